"""A mirror that is made from the lake has the ACLs that its source had, or is not made: without
any it may be open to all. So they are noted whenever the source answers, also while the target is
away."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import acl_sync, config_sync
from mirrorlake.control.topic_sync import TargetTopics, TopicsUnmade
from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.admin_acls import NoAcls
from mirrorlake.kafka.admin_configs import Described
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl, ConfigValue
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.offsets.progress import NOTHING_MAPPED
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.testing import MemoryCluster
from tests.support.acls import acl
from tests.support.lake_rows import FLOW, no_session, opened, write_file

STAGED = PartitionPlan("orders", 0, "east.orders", floor=NOTHING_MAPPED, first=0, last=9)
NO_AUTHORIZER = NoAcls(True, "no authorizer")
NOT_ALLOWED = NoAcls(False, "DESCRIBE on the cluster is not allowed")
HOUR = {"retention.ms": ConfigValue("3600000", "topic")}


class World:
    """A flow whose topic is landed, and whose target has no mirror of it yet; `acls` is what the
    clusters report. The first process has not asked for them yet."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.acls: dict[str, frozenset[Acl] | NoAcls] = {
            "east": frozenset({acl("orders")}),
            "west": frozenset(),
        }
        self.made: list[Acl] = []
        monkeypatch.setattr(acl_sync, "describe_topic_acls", self._acls_of)
        monkeypatch.setattr(acl_sync, "create_acls", self._create)
        monkeypatch.setattr(config_sync, "describe_topic_configs", self._configs_of)
        topology = load_topology(write_file(directory, flows={FLOW: {"topics": ["orders"]}}))
        self.lake = opened(no_session, directory / "mirrorlake.yml")[0]
        self.source = MemoryCluster("east", {"orders": [10]})
        self.target = MemoryCluster("west")
        self.flow = topology.flow(FLOW)
        self.connections = Connections(topology, {"east": self.source, "west": self.target})
        self.log = EventLog(self.lake)
        self.log.states.note("east", {"orders": TopicState(1, 1)})

    def _acls_of(self, cluster: MemoryCluster) -> frozenset[Acl] | NoAcls:
        cluster.cluster_id()  # raises where it is away
        return self.acls[cluster.alias]

    def _create(self, _cluster: object, acls: Sequence[Acl]) -> dict[Acl, None]:
        self.made += acls
        return dict.fromkeys(acls)

    def _configs_of(self, cluster: MemoryCluster, topics: Iterable[str]) -> Described:
        cluster.cluster_id()
        return Described({topic: HOUR if cluster.alias == "east" else {} for topic in topics}, {})

    def process(self) -> TargetTopics:
        """The target topics of a process that begins."""
        return TargetTopics(self.flow, Deployment(self.lake, self.connections, EventLog(self.lake)))

    def noted(self) -> TopicState:
        return EventLog(self.lake).states.newest("east")["orders"]

    def mirrored_without_source(self) -> bool:
        """Whether a process makes the mirror while the source is away."""
        self.source.refusal = ClusterUnreachable("away", alias="east")
        self.target.refusal = None
        topics = self.process()
        with suppress(TopicsUnmade):
            topics.ensure([STAGED])
        for error in topics.closed().values():
            assert "does not know which ACLs orders has on cluster east" in str(error)
        assert ("east.orders" in self.target.ends) is not bool(topics.closed())
        return "east.orders" in self.target.ends


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def compare_while_the_target_is_away(world: World) -> None:
    """As control does at each turn."""
    world.target.refusal = ClusterUnreachable("away", alias="west")
    topics = world.process()
    for turn in (topics.refresh, topics.acls.sync, topics.configs.sync):
        with pytest.raises(ClusterUnreachable):
            turn()


def test_what_the_source_says_is_noted_while_the_target_is_away(world: World) -> None:
    compare_while_the_target_is_away(world)
    noted = world.noted()
    assert (noted.acls, noted.configs) == ((acl("orders"),), {"retention.ms": "3600000"})
    assert world.mirrored_without_source() and world.made == [acl("east.orders")]


def test_a_mirror_whose_acls_are_not_known_is_not_made(world: World) -> None:
    """The lake counted as saying that there are none."""
    assert not world.mirrored_without_source() and world.made == []


def test_nor_is_one_of_a_topic_that_is_gone_at_the_source(world: World) -> None:
    world.acls["east"] = NOT_ALLOWED
    world.source.delete("orders")
    topics = world.process()
    topics.refresh()
    with pytest.raises(TopicsUnmade):
        topics.ensure([STAGED])
    assert "east.orders" not in world.target.ends


@pytest.mark.parametrize("alias", ["east", "west"])
def test_one_is_made_where_a_cluster_has_no_authorizer(world: World, alias: str) -> None:
    """Then there is nothing to open: the source was open to all, or the target is to all else."""
    world.acls[alias] = NO_AUTHORIZER
    if alias == "east":
        compare_while_the_target_is_away(world)
        assert world.noted().acls == ()
    assert world.mirrored_without_source()
