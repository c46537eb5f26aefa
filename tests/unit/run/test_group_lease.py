"""A lease that Kafka keeps, over a member that says what a test wants. No Kafka."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import LeaseTaken, MirrorlakeError
from mirrorlake.kafka.groups import GroupMembers
from mirrorlake.naming.worker_groups import Process
from mirrorlake.run import group_lease
from mirrorlake.run.group_lease import GroupLease
from mirrorlake.run.group_member import SESSION_SECONDS, member_settings, now, session_seconds
from tests.support.waiting import until

HERE, THERE = Process("here", 1, "06:00"), Process("there", 2, "05:00")


class Member:
    """What a client of Kafka's would say."""

    made: list["Member"] = []
    begins_with = False  # whether another process works when it comes

    def __init__(
        self, _group: str, client: Any, protocol: str, instance: str | None, _process: Process
    ) -> None:
        self.client, self.protocol, self.instance = client, protocol, instance
        self.works, self.stands_by = False, self.begins_with
        self.error: Exception | None = None
        self.ended: str | None = None
        self.polls = 0
        Member.made.append(self)

    def poll(self) -> None:
        time.sleep(0.01)
        self.polls += 1
        if self.error is not None:
            raise self.error

    def worker(self) -> Process:
        return THERE

    def close(self) -> None:
        self.ended = "closed"

    def leave(self) -> None:
        self.ended = "left"


class Cluster:
    """One that makes any topic, and says who is in a group."""

    consumer: dict[str, str] = {}

    def __init__(self) -> None:
        self.members: list[tuple[str, bool]] = []
        self.topology = SimpleNamespace(clusters={"west": self})

    def live(self, *_: str) -> Any:
        return SimpleNamespace(now={"bootstrap.servers": "west:9092"}, renewed=lambda: False)

    def admin(self, alias: str) -> Any:
        return SimpleNamespace(alias=alias)

    def groups(self, _alias: str) -> Any:
        return SimpleNamespace(
            members=lambda groups: GroupMembers(dict.fromkeys(groups, self.members))
        )


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    Member.made = []
    monkeypatch.setattr(group_lease, "GroupMember", Member)
    monkeypatch.setattr(group_lease, "InternalTopic", lambda *_: SimpleNamespace(ensure=bool))
    monkeypatch.setattr(group_lease, "PAUSES", (0.01,))
    monkeypatch.setattr(group_lease, "LOOK_SECONDS", 0.01)
    return Cluster()


@pytest.fixture
def made(cluster: Cluster) -> Iterator[list[GroupLease]]:
    """The leases of a test: none is left joined."""
    leases: list[GroupLease] = []
    yield leases
    for lease in leases:
        lease.leave()


def lease_of(cluster: Cluster, made: list[GroupLease], **more: Any) -> GroupLease:
    connections: Any = cluster
    lease = GroupLease(
        "flow east->west", "g", "west", lambda: connections, process=HERE, instance="here-0", **more
    )
    made.append(lease)
    return lease


def member(number: int = 0) -> Member:
    until(lambda: len(Member.made) > number, "a member")
    return Member.made[number]


def test_a_member_has_it_while_its_group_says_so(cluster: Cluster, made: list[GroupLease]) -> None:
    lease = lease_of(cluster, made)
    lease.join()
    with pytest.raises(LeaseTaken, match="flow east->west"):
        lease.take()
    assert member().ended is None, "who asked in vain stays a member"
    member().works = True
    lease.take()
    assert lease.held
    lease.release()
    assert lease.held, "it is a member until it leaves"
    lease.leave()
    assert member().ended == "left"
    assert not lease.held


def test_one_whose_thread_does_not_start_joins_the_next_time(
    cluster: Cluster, made: list[GroupLease], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a host has no thread more for a moment."""
    lease = lease_of(cluster, made)

    def start(_worker: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as no_threads, pytest.raises(RuntimeError):
        no_threads.setattr(group_lease.Worker, "start", start)
        lease.join()
    lease.join()
    assert member().ended is None


def test_a_command_is_a_member_from_take_to_release(
    cluster: Cluster, made: list[GroupLease]
) -> None:
    lease = lease_of(cluster, made, waits=True)
    cluster.consumer = {"group.protocol": "consumer"}
    threading.Timer(0.1, lambda: setattr(member(), "works", True)).start()
    lease.take(sure=True)
    assert (member().protocol, member().instance) == ("consumer", "here-0")
    lease.release()
    assert member().ended == "left"


def test_a_command_is_refused_what_another_process_does(
    cluster: Cluster, made: list[GroupLease], monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = lease_of(cluster, made, waits=True)
    monkeypatch.setattr(Member, "begins_with", True)
    with pytest.raises(LeaseTaken, match="flow east->west"):
        lease.take(sure=True)
    assert member().ended == "left"


def test_one_whose_name_another_process_has_goes_on_without(
    cluster: Cluster, made: list[GroupLease]
) -> None:
    lease = lease_of(cluster, made)
    lease.join()
    member().error = KafkaException(KafkaError(KafkaError.FENCED_INSTANCE_ID, "fenced", fatal=True))
    assert member(1).instance is None
    assert member().ended == "closed"


def test_operators_hear_of_one_that_cannot_be_a_member_until_it_can(
    cluster: Cluster, made: list[GroupLease], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[MirrorlakeError | None] = []
    lease = lease_of(cluster, made, refused=told.append)
    wrong = [KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))]
    monkeypatch.setattr(Member, "poll", lambda _self: _raise(wrong))
    lease.join()
    until(lambda: told, "operators")
    assert "Group authorization failed; if a right is missing" in str(told[0])
    wrong.clear()
    until(lambda: told[-1] is None, "that it is over")
    assert None not in told[:-1]
    assert Member.made[-1].ended is None


@pytest.mark.parametrize("quiet", [0, 1_000], ids=["told", "for a moment"])
def test_what_operators_heard_of_is_what_it_is_left_with(
    cluster: Cluster, made: list[GroupLease], monkeypatch: pytest.MonkeyPatch, quiet: int
) -> None:
    """A process that never was a member ended with exit code 0."""
    monkeypatch.setattr(group_lease, "QUIET_FAILURES", quiet)
    lease = lease_of(cluster, made)
    wrong = [KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))]
    monkeypatch.setattr(Member, "poll", lambda _self: _raise(wrong))
    lease.join()
    member(2)
    lease.leave()
    assert ("cannot be a member of group g" in str(lease.error)) is (quiet == 0)
    wrong.clear()
    lease.join()
    until(lambda: not lease._is_refused, "it is one")
    lease.leave()
    assert lease.error is None


def test_what_a_process_before_was_refused_is_over_once_this_one_works(
    cluster: Cluster, made: list[GroupLease]
) -> None:
    """That one may have been killed, or started again with other rights."""
    told: list[MirrorlakeError | None] = []
    lease_of(cluster, made, refused=told.append).join()
    member().stands_by = True
    polls = member().polls
    until(lambda: member().polls > polls + 3, "some turns")
    assert told == [], "who stands by says nothing"
    member().works = True
    until(lambda: told == [None], "that it is over")
    polls = member().polls
    until(lambda: member().polls > polls + 3, "some turns")
    assert told == [None], "once"


def _raise(errors: list[KafkaException]) -> None:
    time.sleep(0.01)
    if errors:
        raise errors[0]


def test_one_that_only_stands_by_joins_once_another_works(
    cluster: Cluster, made: list[GroupLease]
) -> None:
    lease = lease_of(cluster, made, joins_after_others=True)
    cluster.members = [("a member that stands by as well", False)]
    lease.join()
    time.sleep(0.1)
    assert Member.made == []
    cluster.members = [("one that works", True)]
    member()
    cluster.members = []
    member().works = True
    assert lease.held, "and works when that one is gone"


def test_the_incident_of_one_that_waits_for_another_ends_when_the_cluster_answers(
    cluster: Cluster, made: list[GroupLease]
) -> None:
    """It is no member then either, and is not to be one: the incident stayed open for ever."""
    told: list[MirrorlakeError | None] = []
    lease = lease_of(cluster, made, joins_after_others=True, refused=told.append)
    groups = cluster.groups
    away = SimpleNamespace(
        members=lambda groups: GroupMembers({}, dict.fromkeys(groups, "timed out"))
    )
    cluster.groups = lambda _alias: away  # type: ignore[method-assign]
    lease.join()
    until(lambda: told, "operators")
    cluster.groups = groups  # type: ignore[method-assign]
    until(lambda: told[-1] is None, "that it is over")
    assert Member.made == []


def test_a_cluster_of_another_address_gets_another_client(
    cluster: Cluster, made: list[GroupLease]
) -> None:
    lease = lease_of(cluster, made)
    lease.join()
    member()
    cluster.topology = SimpleNamespace(clusters={"west": Cluster()})
    member(1)
    assert member().ended == "closed", "its name is kept for the next one"


def test_the_newer_protocol_gets_nothing_that_its_brokers_decide() -> None:
    client = {"session.timeout.ms": 9_000, "heartbeat.interval.ms": 3_000, "client.id": "c"}
    classic = member_settings(client, "classic", "here-0")
    assert classic["session.timeout.ms"] == 9_000, "the topology file comes first"
    assert classic["group.instance.id"] == "here-0"
    newer = member_settings(client, "consumer", "here-0")
    assert newer["group.protocol"] == "consumer"
    assert not newer.keys() & {
        *("session.timeout.ms", "heartbeat.interval.ms", "group.instance.id"),
        "partition.assignment.strategy",
    }
    with pytest.raises(MirrorlakeError, match="classic or consumer, not share"):
        member_settings(client, "share", None)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, SESSION_SECONDS),
        ({"session.timeout.ms": 6_000}, 6.0),
        ({"session.timeout.ms": 45_000}, SESSION_SECONDS),
    ],
    ids=["default", "shorter", "longer"],
)
def test_what_was_heard_counts_for_no_longer_than_the_group_waits(
    given: dict[str, str | int | bool], seconds: float
) -> None:
    assert session_seconds(given) == seconds


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="a clock that only Linux has")
def test_its_clock_goes_on_while_the_host_is_suspended() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= now() <= time.clock_gettime(time.CLOCK_BOOTTIME)
