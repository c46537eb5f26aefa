"""Reads ranges of offsets of a cluster as Arrow: the port `Log`, and which implementation.

`native/reader.py` if the compiled part works, else `kafka/python_log.py`, with the same rows.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mirrorlake.kafka.client_pool import ClientPool
from mirrorlake.native import PATIENCE_SECONDS
from mirrorlake.offsets.positions import Ranges, TopicAndPartition

if TYPE_CHECKING:  # modules that plan what is read need neither Arrow nor a client
    import pyarrow as pa


class Log(Protocol):
    """Reads committed records of one cluster, without a group. For one thread; to be closed."""

    def read(self, ranges: Ranges) -> "Iterator[tuple[TopicAndPartition, pa.RecordBatch]]":
        """Read the records of partitions.

        Yields batches of `native.columns.SCHEMA`, each of one partition, with rising offsets;
        batches of several partitions alternate. If a header's name is not UTF-8, the batch has
        `header_names` too (`native/exact.py`). confluent-kafka does not give the headers of such a
        record: it then has a single one without a name, which no record has otherwise.

        Raises:
            KafkaException: a partition cannot be read (the text names it): `_AUTO_OFFSET_RESET` if
            the log begins behind the first offset, `_TIMED_OUT` if it gives nothing for so long.
            ClusterSilent: no broker answers.
        """

    def keep_prefetched(self, keys: Collection[TopicAndPartition]) -> None:
        """Prefetch nothing of other partitions than these, and drop what was fetched of them."""

    def pause(self) -> None:
        """Fetch nothing until the next ranges are read, unless much was fetched ahead."""

    def close(self) -> None:
        """Release the client, and what it fetched."""


def open_log(
    settings: Mapping[str, Any],
    keep: bool = False,
    patience_seconds: float = PATIENCE_SECONDS,
    small_answers: bool = False,
) -> Log:
    """A log of a cluster, native if possible.

    Args:
        settings: of a client, by librdkafka's names.
        keep: the caller reads on: partitions stay assigned, and are not released after a range.
        patience_seconds: how long the cluster, or a partition being read, may be silent.
        small_answers: fetch in small answers, so that records arrive piece by piece and little is
            fetched in vain: for a slow link.
    """
    from mirrorlake.native.selfcheck import usable

    if usable("read"):
        from mirrorlake.native import reader

        return reader.NativeReader(settings, keep, patience_seconds, small_answers)
    from mirrorlake.kafka.python_log import PythonLog

    return PythonLog(settings, keep, patience_seconds, small_answers)


#: The logs, by their settings, from which this process has read ranges for tasks.
_logs: ClientPool[Log] = ClientPool(lambda log: log.close())


def read_ranges(
    alias: str, settings: Mapping[str, Any], ranges: Ranges, small_answers: bool = False
) -> "Iterator[tuple[TopicAndPartition, pa.RecordBatch]]":
    """`Log.read` by this process's log of a cluster, kept unless it failed or was left early."""
    name = json.dumps([dict(settings), small_answers], sort_keys=True)
    log = _logs.take(name) or open_log(settings, small_answers=small_answers)
    try:
        yield from log.read(ranges)
    except BaseException:
        log.close()
        raise
    # Replaces another log of the same cluster, whose secret was rotated since.
    _logs.put(name, log, f"{alias} at {settings.get('bootstrap.servers')}")
