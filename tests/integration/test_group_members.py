"""Members of a group of which one works, on real brokers, by both protocols of Kafka: who leaves is
followed at once, and who comes takes nothing away. Without Spark."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from confluent_kafka import KafkaException

from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.groups import GroupAdmin
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.naming.worker_groups import TOPIC, Process, client_id, process_of_client
from mirrorlake.run.group_lease import _NAME_TAKEN
from mirrorlake.run.group_member import GroupMember
from tests.support.clusters import ClusterPair
from tests.support.waiting import until

BOTH = pytest.mark.parametrize(
    "protocol",
    [
        "classic",
        pytest.param("consumer", marks=pytest.mark.wide("test_who_leaves_is_followed_at_once")),
    ],
)
#: How long a member waits that takes what another one has left, seconds.
AT_ONCE = 6.0


class Polled:
    """A member whose thread hears what is new."""

    def __init__(self, cluster: str, group: str, protocol: str, number: int) -> None:
        process = Process("host", number, "06:00")
        client = {"bootstrap.servers": cluster, "client.id": client_id("west", process)}
        self.member = GroupMember(group, client, protocol, f"host-{number}", process)
        self.raised: KafkaException | None = None
        self._ended = Event()
        self._thread = Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        try:
            while not self._ended.is_set():
                self.member.poll()
        except KafkaException as error:
            self.raised = error

    def leave(self) -> None:
        """In order."""
        self._end(self.member.leave)

    def close(self) -> None:
        """As if it was killed, to the group."""
        self._end(self.member.close)

    def _end(self, how: Callable[[], None]) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self._thread.join()
            how()


class Group:
    """A group on a cluster that has the topic."""

    def __init__(self, cluster: str, protocol: str) -> None:
        self._cluster, self._protocol = cluster, protocol
        self.name = f"workers-{uuid.uuid4().hex[:8]}"
        admin = ClusterAdmin("west", {"bootstrap.servers": cluster})
        if TOPIC not in admin.topics():
            admin.create_topics([TopicInfo(TOPIC, 1, 1)])
        self._admin = GroupAdmin(admin, LiveSettings(lambda: {"bootstrap.servers": cluster}))

    @contextmanager
    def member(self, number: int) -> Iterator[Polled]:
        polled = Polled(self._cluster, self.name, self._protocol, number)
        try:
            yield polled
        finally:
            polled.close()

    def members(self) -> dict[int, bool]:
        """The members, by the number of their process: whether each has the partition."""
        until(lambda: not self._admin.members([self.name]).errors, "a new cluster's coordinator")
        answer = self._admin.members([self.name])
        known = {process_of_client(client): has for client, has in answer.members[self.name]}
        return {process.pid: has for process, has in known.items() if process is not None}


@BOTH
def test_who_leaves_is_followed_at_once(clusters: ClusterPair, protocol: str) -> None:
    group = Group(clusters.west, protocol)
    assert group.members() == {}
    with group.member(1) as first, group.member(2) as second:
        until(lambda: first.member.works or second.member.works, "one works")
        until(lambda: first.member.stands_by or second.member.stands_by, "one stands by")
        works, other = (first, second) if first.member.works else (second, first)
        assert not other.member.works
        with group.member(3) as third:
            until(lambda: third.member.stands_by, "a third one")
            assert works.member.works, "who comes takes nothing away"
            assert sorted(group.members()) == [1, 2, 3]
            assert sum(group.members().values()) == 1
            works.leave()
            until(lambda: other.member.works or third.member.works, "another one", AT_ONCE)
            assert not works.member.works
            assert sum(group.members().values()) == 1


def test_one_that_is_started_again_goes_on_with_what_it_had(clusters: ClusterPair) -> None:
    """By the name of its host, within a session, and though another one stands by."""
    group = Group(clusters.west, "classic")
    with group.member(1) as first:
        until(lambda: first.member.works, "it works")
        with group.member(2) as second:
            until(lambda: second.member.stands_by, "one stands by")
            first.close()
            with group.member(1) as again:
                until(lambda: again.member.works, "it works again", AT_ONCE)
                assert not second.member.works


def test_one_whose_name_another_takes_hears_of_it(clusters: ClusterPair) -> None:
    group = Group(clusters.west, "classic")
    with group.member(1) as first:
        until(lambda: first.member.works, "it works")
        with group.member(1) as second:
            until(lambda: first.raised, "it is fenced")
            until(lambda: second.member.works, "the other one has what it had")
            assert first.raised is not None and first.raised.args[0].code() in _NAME_TAKEN
