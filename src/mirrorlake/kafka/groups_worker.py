"""The process that speaks about consumer groups to one cluster, for `kafka.groups`; it holds nothing but a connection.

Reads one JSON document a line from stdin, the client's settings first, and answers each in one line on stdout. Ends
when stdin does, so also when its parent is killed.
"""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

#: What a cluster answers while a group's coordinator is not known yet, above all a new cluster.
_COORDINATOR_MOVES = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)
#: Groups asked for at once.
GROUPS_AT_ONCE = 500


def main() -> None:
    """Answer until stdin ends."""
    settings = json.loads(sys.stdin.readline())
    seconds = float(settings.pop("mirrorlake.seconds"))
    client = AdminClient(settings)
    work: Mapping[str, Callable[..., object]] = {"offsets": _offsets, "alter": _alter, "rights": _rights}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"answer": work[request["do"]](client, seconds, request["groups"])}
        except KafkaException as error:
            answer = {"error": str(error.args[0].str())}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _offsets(client: AdminClient, seconds: float, groups: list[str]) -> object:
    """Positions by group, each [topic, partition, offset, metadata]; for groups that were not answered, why not."""
    positions: dict[str, list[Any]] = {}
    errors: dict[str, str] = {}
    for chunk in _chunks(groups):
        # `require_stable` waits for positions of transactions that are still being committed (KIP-447).
        asked = {
            group: client.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], require_stable=True, request_timeout=seconds
            )[group]
            for group in chunk
        }
        for group, future in asked.items():
            try:
                found = future.result().topic_partitions
            except KafkaException as error:
                errors[group] = str(error.args[0].str())
                continue
            bad = [item.error for item in found if item.error is not None]
            if bad:
                errors[group] = str(bad[0].str())
            else:
                positions[group] = [
                    [item.topic, item.partition, item.offset, item.metadata or ""] for item in found if item.offset >= 0
                ]
    return {"positions": positions, "errors": errors}


def _alter(client: AdminClient, seconds: float, groups: Mapping[str, list[list[Any]]]) -> object:
    """Set positions; the refusals: by group, [topic, partition, reason] each."""
    refused: dict[str, list[list[Any]]] = {}
    for chunk in _chunks(groups):
        asked = {}
        for group in chunk:
            wanted = [TopicPartition(t, p, offset, metadata=text) for t, p, offset, text in groups[group]]
            request = [ConsumerGroupTopicPartitions(group, wanted)]
            asked[group] = client.alter_consumer_group_offsets(request, request_timeout=seconds)[group]
        for group, future in asked.items():
            try:
                found = future.result().topic_partitions
                bad = [[item.topic, item.partition, str(item.error.str())] for item in found if item.error is not None]
            except KafkaException as error:
                bad = [[topic, partition, str(error.args[0].str())] for topic, partition, _, _ in groups[group]]
            if bad:
                refused[group] = bad
    return refused


def _rights(client: AdminClient, seconds: float, group: str) -> list[str] | None:
    """The operations allowed on a group: none when it may not be described, None when the cluster does not tell."""
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while True:
        asked = client.describe_consumer_groups([group], include_authorized_operations=True, request_timeout=seconds)
        try:
            operations = asked[group].result().authorized_operations
            return [operation.name for operation in operations] if operations else None
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return []
            if code not in _COORDINATOR_MOVES or time.monotonic() > deadline:
                raise
            pause.wait(0.2)


def _chunks(groups: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(groups)
    while chunk := list(islice(rest, GROUPS_AT_ONCE)):
        yield chunk


if __name__ == "__main__":
    main()
