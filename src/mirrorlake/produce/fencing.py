"""Fencing tokens: a task that outlived its driver and begins late must not write what belongs to
another one by now.

While a partition keeps its transactional id, the task that initialised the id last is the only
writer (KIP-98). But partitions move between ids with another number of `produce_tasks`, and records
may be deleted from the stage that such a task still holds: it would initialise its id after all
others, and write. So the process that makes such a change first notes a new token at the target,
and then fences the ids. A task that initialised its id before is fenced; a later one finds the
newer token, which it asks for then.

The token is the committed offset of a group of its own in partition 0 of each target topic: Kafka
forgets it with the topic, or after some days. Without such a change there is none.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mirrorlake import failpoints
from mirrorlake.attempts import attempts
from mirrorlake.errors import PlanOutdated
from mirrorlake.kafka.values import COORDINATOR_MOVES
from mirrorlake.offsets.runs import CommittedMetadata, encode_metadata
from mirrorlake.produce.patience import CALL_SECONDS
from mirrorlake.produce.spec import Target
from mirrorlake.produce.writer import ShardWriter

logger = logging.getLogger(__name__)


def newest_token(target: Target, topics: Collection[str]) -> int:
    """The newest token noted in some target topics; 0 if there is none. Raises KafkaException."""
    if not topics:
        return 0
    wanted = [TopicPartition(topic, 0) for topic in sorted(topics)]
    with _group(target) as group:
        committed = _answered(lambda: group.committed(wanted, CALL_SECONDS))
    return max(0, *(int(position.offset) for position in committed))


def fence_all(shards: Sequence[Target], topics: Collection[str]) -> int:
    """Stop every task planned before from writing to some target topics, and end open transactions
    of the shards' producers there. Returns the new token for tasks' jobs. Raises KafkaException."""
    # A time: Kafka forgets the position of a group without members after a week, while a process
    # that was planned with the old token may still be there.
    token = max(newest_token(shards[0], topics) + 1, time.time_ns() // 1_000_000)
    _note(shards[0], topics, token)
    failpoints.reached("token-noted")
    for shard in shards:
        ShardWriter(shard)  # initialises its transactional id
    return token


def set_back(shards: Sequence[Target], places: Mapping[tuple[str, int], int]) -> None:
    """Reset the flow's positions in some target partitions; values are generations of their topics.
    No task that was planned before commits a position after that. Raises KafkaException."""
    fence_all(shards, {topic for topic, _ in places})
    target = shards[0]
    wanted = [
        TopicPartition(*place, 0, encode_metadata(CommittedMetadata(0, generation, ())))
        for place, generation in places.items()
    ]
    with _consumer(target, target.group_id) as group:
        _answered(lambda: group.commit(offsets=wanted, asynchronous=False) or [])


def check_token(target: Target, topics: Collection[str]) -> None:
    """Check that the caller's token is the newest of its topics; it has initialised its id before.

    Raises PlanOutdated, KafkaException.
    """
    if newest_token(target, topics) > target.fencing_token:
        raise PlanOutdated(
            f"{target.transactional_id} was planned before another process fenced it: it writes "
            "nothing; a flow that runs restarts by itself"
        )


def _note(target: Target, topics: Collection[str], token: int) -> None:
    if not topics:
        return
    wanted = [TopicPartition(topic, 0, token) for topic in sorted(topics)]
    with _group(target) as group:
        try:
            _answered(lambda: group.commit(offsets=wanted, asynchronous=False) or [])
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


def _group(target: Target) -> AbstractContextManager[Consumer]:
    return _consumer(target, f"{target.group_id}-fencing")


def _consumer(target: Target, name: str) -> AbstractContextManager[Consumer]:
    settings = {"group.id": name, "enable.auto.commit": False, "logger": logger}
    return closing(Consumer({**target.client, **settings}))


def _answered(ask: Callable[[], list[TopicPartition]]) -> list[TopicPartition]:
    """A call's answer, once its (mostly new) group has a coordinator. Raises KafkaException."""
    places: list[TopicPartition] = []
    for last in attempts(CALL_SECONDS, 0.2):
        try:
            places = ask()
            _raise_for(places)
            break
        except KafkaException as error:
            if last or error.args[0].name() not in COORDINATOR_MOVES:
                raise
    return places


def _raise_for(places: Iterable[TopicPartition]) -> None:
    """Raise the first error, except for topics that are gone, and their tokens with them."""
    for place in places:
        if place.error is not None and place.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise KafkaException(place.error)
