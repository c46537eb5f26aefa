"""While an operator has to decide about a topic, nothing new is allowed on its mirror: the source's
ACLs are about the new topic, and the mirror has the records of the one before."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import acl_sync
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.incidents import Incidents
from mirrorlake.testing import MemoryCluster, MemoryLake
from tests.support.acls import acl
from tests.support.lake_rows import FLOW, no_session, opened, write_file

NAMES = ("fine", "made")
KEPT = acl("east.made", principal="User:old")


class Sides:
    """A flow whose topics have mirrors; `at` are the ACLs of both clusters."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at: dict[str, set[Acl]] = {"east": {acl("made", principal="User:old")}, "west": set()}
        monkeypatch.setattr(acl_sync, "describe_topic_acls", self._of)
        monkeypatch.setattr(acl_sync, "create_acls", self._create)
        monkeypatch.setattr(acl_sync, "delete_acls", self._delete)
        topology = load_topology(write_file(directory, flows={FLOW: {"topics": [*NAMES]}}))
        self.source = MemoryCluster("east", dict.fromkeys(NAMES, [0]))
        clusters: Any = {
            "east": self.source,
            "west": MemoryCluster("west", {f"east.{name}": [0] for name in NAMES}),
        }
        log: Any = MemoryLog()
        self.log: MemoryLog = log
        nothing = lambda *_, **__: {}  # noqa: E731
        log.states = SimpleNamespace(note=nothing, note_acls=nothing, newest=nothing)
        lake, _ = opened(no_session, directory / "mirrorlake.yml")
        log.incidents = self.incidents = Incidents(lake)
        self.lake = MemoryLake({"target_generations_of": [], "generations_of": []})
        deployment = Deployment(self.lake, Connections(topology, clusters), log)
        self.topics = TargetTopics(topology.flow(FLOW), deployment)
        self.topics.acls.sync()
        assert self.at["west"] == {KEPT}

    def _of(self, cluster: MemoryCluster) -> frozenset[Acl]:
        return frozenset(self.at[cluster.alias])

    def _create(self, _cluster: object, acls: Sequence[Acl]) -> dict[Acl, None]:
        self.at["west"] |= {*acls}
        return dict.fromkeys(acls)

    def _delete(self, _cluster: object, acls: Sequence[Acl]) -> dict[Acl, None]:
        self.at["west"] -= {*acls}
        return dict.fromkeys(acls)

    def waits(self, how: str) -> None:
        """From now on `made` waits, or is about to."""
        if how == "reported":
            error = ReplicationError("it was", topic="made")
            self.incidents.open(FLOW, "topic_recreated", error)
        elif how == "stopped":
            self.topics.generations.stopped = frozenset({"made"})
        elif how == "not said":
            self._landed({})
            identities = self.source._identities
            hidden = {"made"}
            others = lambda topics: identities([*({*topics} - hidden)])  # noqa: E731
            self.source._identities = others  # type: ignore[method-assign]
        else:
            self._landed({"made": "the one before"})

    def _landed(self, others: Mapping[str, str]) -> None:
        """The topics were landed with the ids that they have, except for `others`."""
        there, _ = self.source.identities(NAMES)
        ids = {name: there[name].topic_id for name in NAMES} | others
        self.lake.answers["generations_of"] = [
            {"topic": topic, "partition": None, "generation": 0, "topic_id": topic_id}
            for topic, topic_id in ids.items()
        ]


@pytest.fixture
def sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sides:
    return Sides(tmp_path, monkeypatch)


@pytest.mark.parametrize("how", ["reported", "stopped", "not reported yet"])
def test_nothing_new_is_allowed_on_its_mirror(sides: Sides, how: str) -> None:
    sides.waits(how)
    sides.at["east"] |= {acl("made"), acl("fine"), acl("made", permission="DENY")}
    for _ in range(2):
        sides.topics.acls.sync()
        denied = acl("east.made", permission="DENY")
        assert sides.at["west"] == {KEPT, acl("east.fine"), denied}
    assert not sides.topics.acls.refused, "the topic has an incident already"


def test_it_is_said_where_the_source_does_not_say_whether_it_waits(sides: Sides) -> None:
    """It has no incident of its own."""
    sides.waits("not said")
    sides.at["east"] |= {acl("made"), acl("fine")}
    for _ in range(2):
        sides.topics.acls.sync()
        assert sides.at["west"] == {KEPT, acl("east.fine")}
        (text,) = sides.topics.acls.refused
        assert "does not say whether topic made is the one that was mirrored" in text
    rows = [row for _, row in sides.log.rows if row.outcome == "refused"]
    assert [(row.resource, row.error) for row in rows] == [("east.made", text)]
    sides.lake.answers["generations_of"] = []
    sides.topics.acls.sync()
    assert acl("east.made") in sides.at["west"] and not sides.topics.acls.refused


def test_what_is_allowed_by_a_prefix_waits_as_a_whole(sides: Sides) -> None:
    sides.waits("reported")
    sides.at["east"] |= {acl("*"), acl("fine", principal="User:bob")}
    sides.topics.acls.sync()
    assert sides.at["west"] == {KEPT, acl("east.fine", principal="User:bob")}
    sides.incidents.close(lambda _: True)
    sides.topics.acls.sync()
    assert acl("east.", pattern="PREFIXED") in sides.at["west"]


def test_removals_go_on(sides: Sides) -> None:
    """Also of a right that the source gives otherwise now: that one waits."""
    sides.at["east"] |= {acl("*")}
    sides.topics.acls.sync()
    assert acl("east.", pattern="PREFIXED") in sides.at["west"]
    sides.waits("reported")
    sides.at["east"] = {acl("made")}
    sides.topics.acls.sync()
    assert sides.at["west"] == set()
