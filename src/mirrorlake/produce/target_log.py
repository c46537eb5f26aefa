"""Reads a target partition where the flow's position there does not help: the first record that may
be the flow's, if the position is forgotten; all from an offset on, if the lake is older."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException

from mirrorlake.attempts import attempts
from mirrorlake.kafka.answered_offsets import log_bounds
from mirrorlake.kafka.log import Log, open_log
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.patience import CALL_SECONDS
from mirrorlake.produce.provenance import may_be_of
from mirrorlake.produce.spec import Target

logger = logging.getLogger(__name__)

#: How long to wait for the end of other producers' transactions, and how often to look, seconds.
OPEN_SECONDS, _LOOK_SECONDS = 2.0, 0.05


def with_open_transactions(
    consumer: Consumer, target: Target, starts: Mapping[TopicAndPartition, int]
) -> frozenset[TopicAndPartition]:
    """The target partitions in which a transaction stays open, so that there may be records at or
    behind `starts` which a read_committed consumer does not see yet. Raises KafkaException."""
    if not starts:
        return frozenset()
    settings = {"group.id": target.group_id, "isolation.level": "read_uncommitted"}
    with closing(Consumer({**target.client, **settings, "logger": logger})) as uncommitted:
        ends = {key: log_bounds(uncommitted, key, CALL_SECONDS).end for key in starts}
    # Only records in front of these ends count: another producer may go on writing all the time.
    ends = {key: end for key, end in ends.items() if end > starts[key]}
    for _ in attempts(OPEN_SECONDS, _LOOK_SECONDS):
        stable = {key: log_bounds(consumer, key, CALL_SECONDS).end for key in ends}
        ends = {key: end for key, end in ends.items() if stable[key] < end}
        if not ends:
            break
    return frozenset(ends)


def first_record(
    consumer: Consumer, target: Target, key: TopicAndPartition, start: int
) -> int | None:
    """The offset of the first committed record at or behind `start` that may be the flow's, by its
    provenance headers or mark; None if there is none. Only `with_open_transactions` says whether
    all that is there is committed. Raises KafkaException."""
    with closing(_log_of(target)) as log:
        while True:
            first, end = log_bounds(consumer, key, CALL_SECONDS)
            try:
                return _first_within(log, target, key, (max(first, start), end))
            except KafkaException as error:
                if error.args[0].code() != KafkaError._AUTO_OFFSET_RESET:
                    raise  # else retention was quicker


def records_from(
    consumer: Consumer, target: Target, key: TopicAndPartition, start: int, end: int | None
) -> Iterator[pa.RecordBatch]:
    """The committed records of a target partition from `start`, or the start of its log, to below
    `end` (None: its end). Raises KafkaException."""
    first, last = log_bounds(consumer, key, CALL_SECONDS)
    begin, behind = max(first, start), last if end is None else end
    if begin >= behind:
        return
    with closing(_log_of(target)) as log:
        for _, rows in log.read({key: (begin, behind)}):
            yield rows


def _log_of(target: Target) -> Log:
    return open_log({**target.client, "group.id": target.group_id})


def _first_within(
    log: Log, target: Target, key: TopicAndPartition, bounds: tuple[int, int]
) -> int | None:
    for _, rows in log.read({key: bounds}):
        headers = rows.column("headers").to_pylist()
        for offset, of_record in zip(rows.column("offset").to_pylist(), headers, strict=True):
            pairs = [(header["key"], header["value"]) for header in of_record or ()]
            if may_be_of(pairs, target.provenance, target.mark):
                return int(offset)
    return None
