"""The process that queries one cluster's groups for `kafka.groups`; it holds only a connection.

Reads one JSON document per line from stdin, the client's settings first. Answers each request with
a line per group, as soon as it is known, and a last line that ends it: if this process dies, the
reader has the answers so far. Ends with stdin, and so also when its parent is killed.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

#: Groups that are queried at the same time; one that waits for its coordinator holds up no other.
GROUPS_AT_ONCE = 500
#: After how many seconds of a request no group is begun; those under way have their own time.
BUDGET_SECONDS = 60.0
TOO_LATE = f"not asked: others took all of {BUDGET_SECONDS:.0f} s; it comes first the next time"


def main() -> None:
    """Answer until stdin ends."""
    settings = json.loads(sys.stdin.readline())
    seconds = float(settings.pop("mirrorlake.seconds"))
    client = AdminClient(settings)
    for line in sys.stdin:
        request = json.loads(line)
        groups: Mapping[str, Any] = request["groups"]
        ask, read = _WORK[request["do"]]
        asked = partial(_ask_with_value, ask, client, seconds, groups)
        for group, future in ask_in_order(groups, asked):
            try:
                if future is None:
                    answer: Mapping[str, object] = {"error": TOO_LATE}
                else:
                    answer = read(future.result())
            except KafkaException as error:
                reason = error.args[0]
                text = str(reason.str())  # may end before the reason; then the code is appended
                answer = {
                    "error": f"{text}{reason.name()}" if text.endswith(": ") else text,
                    "code": reason.name(),
                }
            except ValueError as error:  # an id that the client does not accept
                answer = {"error": str(error)}
            _write({"group": group, **answer})
        _write({"end": True})


def _ask_with_value(
    ask: "Callable[[AdminClient, float, str, Any], Future[Any]]",
    client: AdminClient,
    seconds: float,
    groups: Mapping[str, Any],
    group: str,
) -> "Future[Any]":
    return ask(client, seconds, group, groups[group])


def _put_answer(
    done: "SimpleQueue[tuple[str, Future[Any]]]", group: str, future: "Future[Any]"
) -> None:
    done.put((group, future))


def ask_in_order(
    groups: Iterable[str],
    ask: Callable[[str], "Future[Any]"],
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[str, "Future[Any] | None"]]:
    """Query groups in order, GROUPS_AT_ONCE at a time; yield each when answered, or with None."""
    done: SimpleQueue[tuple[str, Future[Any]]] = SimpleQueue()
    waiting, under_way, end = iter(groups), 0, clock() + BUDGET_SECONDS
    while True:
        while (
            under_way < GROUPS_AT_ONCE
            and clock() < end
            and (group := next(waiting, None)) is not None
        ):
            _ask_safely(ask, group).add_done_callback(partial(_put_answer, done, group))
            under_way += 1
        if not under_way:
            break
        yield done.get()
        under_way -= 1
    for group in waiting:
        yield group, None


def _ask_members(
    client: AdminClient, seconds: float, group: str, _nothing: object
) -> "Future[Any]":
    future: Future[Any] = client.describe_consumer_groups([group], request_timeout=seconds)[group]
    return future


def _members(description: ConsumerGroupDescription) -> Mapping[str, object]:
    """The members of a group: each one's client id, and whether it has a partition."""
    return {
        "members": [
            [member.client_id, bool(member.assignment and member.assignment.topic_partitions)]
            for member in description.members
        ]
    }


def _ask_rights(client: AdminClient, seconds: float, group: str, _nothing: object) -> "Future[Any]":
    future: Future[Any] = client.describe_consumer_groups(
        [group], include_authorized_operations=True, request_timeout=seconds
    )[group]
    return future


def _rights(description: ConsumerGroupDescription) -> Mapping[str, object]:
    """The operations allowed on a group; None when the cluster does not report them."""
    operations = description.authorized_operations
    return {"operations": [operation.name for operation in operations] if operations else None}


def _ask_safely(ask: Callable[[str], "Future[Any]"], group: str) -> "Future[Any]":
    try:
        return ask(group)
    except (KafkaException, ValueError) as error:
        refused: Future[Any] = Future()
        refused.set_exception(error)
        return refused


def _ask_offsets(
    client: AdminClient, seconds: float, group: str, _nothing: object
) -> "Future[Any]":
    # `require_stable` waits for positions of transactions that are still being committed (KIP-447).
    request = [ConsumerGroupTopicPartitions(group)]
    future: Future[Any] = client.list_consumer_group_offsets(
        request, require_stable=True, request_timeout=seconds
    )[group]
    return future


def _positions(answer: ConsumerGroupTopicPartitions) -> Mapping[str, object]:
    """Positions, each [topic, partition, offset, metadata], and the first error of a partition."""
    partitions = answer.topic_partitions
    bad = [partition for partition in partitions if partition.error is not None]
    return {
        "positions": [
            [partition.topic, partition.partition, partition.offset, partition.metadata or ""]
            for partition in partitions
            if partition.offset >= 0 and partition.error is None
        ],
        **({"error": f"{bad[0].topic}-{bad[0].partition}: {bad[0].error.str()}"} if bad else {}),
    }


def _ask_alter(
    client: AdminClient, seconds: float, group: str, wanted: list[list[Any]]
) -> "Future[Any]":
    places = [TopicPartition(t, p, offset, metadata=text) for t, p, offset, text in wanted]
    request = [ConsumerGroupTopicPartitions(group, places)]
    future: Future[Any] = client.alter_consumer_group_offsets(request, request_timeout=seconds)[
        group
    ]
    return future


def _refused(answer: ConsumerGroupTopicPartitions) -> Mapping[str, object]:
    """The refusals, each [topic, partition, reason]."""
    bad = [partition for partition in answer.topic_partitions if partition.error is not None]
    return {
        "refused": [
            [partition.topic, partition.partition, str(partition.error.str())] for partition in bad
        ]
    }


_WORK: Mapping[str, tuple[Callable[..., "Future[Any]"], Callable[..., Mapping[str, object]]]] = {
    "offsets": (_ask_offsets, _positions),
    "alter": (_ask_alter, _refused),
    "rights": (_ask_rights, _rights),
    "members": (_ask_members, _members),
}


def _write(document: object) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
