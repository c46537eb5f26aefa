"""Reading ranges of offsets of a cluster as Arrow: one port, `Log`, and who implements it here.

`native/reader.py` does where the compiled part can be used, `kafka/python_log.py` elsewhere. Both
give the same rows.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mirrorlake.kafka.client_pool import ClientPool
from mirrorlake.native import PATIENCE_SECONDS
from mirrorlake.offsets.positions import Ranges, TopicAndPartition

if TYPE_CHECKING:  # who plans what is read needs neither Arrow nor a client
    import pyarrow as pa


class Log(Protocol):
    """Reads what is committed in partitions of one cluster, as a consumer of no group. For one
    thread; to be closed."""

    def read(self, ranges: Ranges) -> "Iterator[tuple[TopicAndPartition, pa.RecordBatch]]":
        """Read the records of partitions.

        Yields batches of `native.columns.SCHEMA`, of one partition each, their offsets rising;
        those of several partitions come in turn. Where a header's name is no UTF-8 a batch has
        `header_names` too (`native/exact.py`). confluent-kafka does not give the headers of such a
        record: it then has a single one without a name, which no record has otherwise.

        Raises:
            KafkaException: a partition cannot be read (its text names it), as `_AUTO_OFFSET_RESET`
                where the log begins behind the first offset; or gives nothing for so long
                (`_TIMED_OUT`).
            ClusterSilent: none of the brokers answers.
        """

    def keep_prefetched(self, keys: Collection[TopicAndPartition]) -> None:
        """Fetch nothing ahead of any partition but these, and drop what was."""

    def pause(self) -> None:
        """Fetch nothing until the next ranges are read, where little was fetched ahead."""

    def close(self) -> None:
        """Let go of the client, and of what it fetched."""


def open_log(
    settings: Mapping[str, Any],
    keep: bool = False,
    patience_seconds: float = PATIENCE_SECONDS,
    small_answers: bool = False,
) -> Log:
    """A log of a cluster, natively where that can be done.

    Args:
        settings: of a client, as librdkafka names them.
        keep: the caller reads on, range after range: partitions stay assigned. Else they are let
            go of once a range is over.
        patience_seconds: how long the cluster, or a partition that is read, may be silent.
        small_answers: records come piece by piece, and little is fetched for in vain: over a slow
            link.
    """
    from mirrorlake.native.selfcheck import usable

    if usable("read"):
        from mirrorlake.native import reader

        return reader.NativeReader(settings, keep, patience_seconds, small_answers)
    from mirrorlake.kafka.python_log import PythonLog

    return PythonLog(settings, keep, patience_seconds, small_answers)


#: A log of each cluster that this process has read tasks' ranges from, by its settings.
_logs: ClientPool[Log] = ClientPool(lambda log: log.close())


def read_ranges(
    alias: str, settings: Mapping[str, Any], ranges: Ranges, small_answers: bool = False
) -> "Iterator[tuple[TopicAndPartition, pa.RecordBatch]]":
    """`Log.read` by this process's log of a cluster, which is kept for the next task; one that
    failed, or was not read to the end, is not used again."""
    name = json.dumps([dict(settings), small_answers], sort_keys=True)
    log = _logs.take(name) or open_log(settings, small_answers=small_answers)
    try:
        yield from log.read(ranges)
    except BaseException:
        log.close()
        raise
    # Another one of the same cluster is of a secret that was rotated since.
    _logs.put(name, log, f"{alias} at {settings.get('bootstrap.servers')}")
