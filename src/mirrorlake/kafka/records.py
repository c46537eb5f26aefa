"""Reads single records of a cluster, without a group's position or a right on a group.

confluent-kafka's consumer reports the epoch of the leader that wrote a record; few are read.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.python_log import LOG_END, PythonLog
from mirrorlake.kafka.refusals import is_refusal, unusable
from mirrorlake.kafka.values import Row
from mirrorlake.native.silence import ClusterSilent
from mirrorlake.offsets.positions import TopicAndPartition

#: How long a cluster may deliver none of the requested records, seconds.
READ_SECONDS = 60.0


def first_rows(
    alias: str, settings: Settings, offsets: Mapping[TopicAndPartition, int]
) -> dict[TopicAndPartition, Row]:
    """The first committed record of each partition at or behind an offset; missing if there is
    none, or if the log begins behind the offset.

    Raises ClusterUnusable when it does not deliver in time, KafkaException when it refuses.
    """
    rows = dict[TopicAndPartition, Row]()
    ranges = {key: (offset, LOG_END) for key, offset in offsets.items()}
    # One record of each partition is enough; of a larger batch the client fetches more.
    few = {**settings, "queued.min.messages": 1}
    with _reading(alias, few) as log:
        for key, (first, *_) in log.messages(ranges):
            log.leave([key])
            place = (first.offset(), first.timestamp()[1])
            rows[key] = Row(*place, first.key(), first.value(), first.leader_epoch())
    return rows


@contextmanager
def _reading(alias: str, settings: Settings) -> Iterator[PythonLog]:
    """A log for the block; its silences are raised as the cluster's."""
    log = PythonLog(settings, patience_seconds=READ_SECONDS, small_answers=True)
    try:
        yield log
    except KafkaException as error:
        silent, reason = isinstance(error, ClusterSilent), error.args[0]
        if silent and is_refusal(reason):
            raise unusable(alias, settings, reason) from error
        if not silent and reason.code() != KafkaError._TIMED_OUT:
            raise
        raise ClusterUnreachable(
            f"cluster {alias} did not give single records within {READ_SECONDS:.0f} s; they are "
            "asked for again",
            alias=alias,
        ) from error
    finally:
        log.close()
