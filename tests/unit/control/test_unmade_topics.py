"""What is told of topics that cannot be mirrored holds as long as they cannot."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import target_generations
from mirrorlake.control.topic_plan import TopicPlan
from mirrorlake.control.topic_sync import TargetTopics, TopicsUnmade
from mirrorlake.control.unmade_topics import UnmadeTopics
from mirrorlake.errors import ClusterUnreachable, TargetRefused
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import CAME_THROUGH, IncidentKey, Incidents
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.offsets.progress import NOTHING_MAPPED
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, no_session, opened, write_file

PLAN = TopicPlan("orders", "east.orders", 3, 1, "refuse", "the name is taken")
STAGED = PartitionPlan("orders", 0, "east.orders", floor=NOTHING_MAPPED, first=0, last=9)
AWAY = ClusterUnreachable("away", alias="east")


@pytest.fixture
def incidents(tmp_path: Path) -> Incidents:
    write_file(tmp_path)
    return Incidents(opened(no_session, tmp_path / "mirrorlake.yml")[0])


def refreshed(unmade: UnmadeTopics, *plans: TopicPlan) -> list[TopicPlan]:
    """As a refresh does it."""
    unmade.replace({}, {plan.topic for plan in plans})
    return unmade.report_plans(plans)


def test_a_topic_is_told_of_until_it_can_be_mirrored_and_again(incidents: Incidents) -> None:
    unmade = UnmadeTopics(FLOW, incidents, lambda _: True)
    assert refreshed(unmade, PLAN) == [PLAN]
    assert refreshed(unmade, PLAN) == [], "once"
    assert incidents.open_kinds(FLOW) == {"topic_refused"}
    # Its incident stayed open until the process ended ...
    refreshed(unmade)
    assert incidents.open_kinds(FLOW) == set()
    # ... and of a topic that was closed, by whatever, nothing was told in this process again.
    assert refreshed(unmade, PLAN) == [PLAN]
    assert incidents.open_kinds(FLOW) == {"topic_refused"}


def test_a_topic_of_which_the_lake_took_no_news_is_told_of_by_the_next_refresh(
    incidents: Incidents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would not be mirrored, and no operator would know, for as long as the process
    lasts."""
    unmade = UnmadeTopics(FLOW, incidents, lambda _: True)

    def full(_flow: str, _kind: str, errors: list[object]) -> None:
        if errors:
            raise OSError("no space left")

    with monkeypatch.context() as lake, pytest.raises(OSError, match="no space"):
        lake.setattr(incidents, "open_all", full)
        refreshed(unmade, PLAN)
    assert refreshed(unmade, PLAN) == [PLAN]
    assert incidents.open_kinds(FLOW) == {"topic_refused"}


class Side:
    """The topics of a flow whose target refuses to make east.orders; its source has no such topic
    any more, or does not answer."""

    def __init__(self, directory: Path) -> None:
        settings = {"sync_topic_acls_enabled": False, "sync_topic_configs_enabled": False}
        flows = {FLOW: {"topics": ["orders"], **settings}}
        topology = load_topology(write_file(directory, flows=flows))
        self.lake = opened(no_session, directory / "mirrorlake.yml")[0]
        self.source, self.target = MemoryCluster("east"), MemoryCluster("west")
        self.log = EventLog(self.lake)
        self.log.states.note("east", {"orders": TopicState(1, 1)})
        self.flow = topology.flow(FLOW)
        self.connections = Connections(topology, {"east": self.source, "west": self.target})
        self.topics = self.process()
        self.refuse()

    def process(self) -> TargetTopics:
        """The topics of a process that begins."""
        return TargetTopics(self.flow, Deployment(self.lake, self.connections, EventLog(self.lake)))

    def refuse(self) -> None:
        no = TargetRefused("a policy forbids it", topic="east.orders", reason="POLICY_VIOLATION")
        self.target.refuses["east.orders"] = no

    def refresh(self, begins: bool) -> int:
        """How often the target was asked to make topics."""
        before = self.target.asked["try_create_topics"]
        with suppress(ClusterUnreachable):
            self.topics.refresh(begins)
        return self.target.asked["try_create_topics"] - before

    @property
    def told(self) -> list[str | None]:
        """How the incidents about unmade topics ended, None for those that are open."""
        rows = self.lake.ask_table("incidents")
        return [row["resolution"] for row in rows if row["kind"] == "topic_refused"]


@pytest.fixture
def side(tmp_path: Path) -> Side:
    return Side(tmp_path)


@pytest.mark.parametrize("silent", [False, True])
def test_a_staged_topic_that_is_gone_at_the_source_waits_until_it_is_made(
    side: Side, silent: bool
) -> None:
    """A refresh finds no trace of it at the source. It took that for an end of the refusal, so that
    the flow began anew with it at once, again and again, and `run --once` did not end; and while
    the source was silent, nothing tried it any more."""
    side.refresh(True)
    with pytest.raises(TopicsUnmade):
        side.topics.ensure([STAGED])
    side.source.refusal = AWAY if silent else None
    for begins in (True, False, True):
        assert side.refresh(begins) == 1, "it is tried again"
        assert side.topics.closed().keys() == {"orders"} and side.told == [None]
    del side.target.refuses["east.orders"]
    side.refresh(False)
    assert not side.topics.closed() and side.told == [CAME_THROUGH]
    side.topics.ensure([STAGED])
    assert side.refresh(True) == 0 and side.told == [CAME_THROUGH]


def refused_before(side: Side) -> None:
    """A process was refused the topic of staged records, and ended; another one begins."""
    side.refresh(True)
    with pytest.raises(TopicsUnmade):
        side.topics.ensure([STAGED])
    side.topics = side.process()
    side.refresh(True)
    assert side.told == [None], "nothing has tried it"


def test_what_an_earlier_process_was_refused_stands_until_it_is_tried(side: Side) -> None:
    """The first refresh of the next process called it over, and its first batch opened it anew."""
    refused_before(side)
    with pytest.raises(TopicsUnmade):
        side.topics.ensure([STAGED])
    side.topics.caught_up()
    side.refresh(False)
    side.topics.flow_ends()
    assert side.topics.closed().keys() == {"orders"} and side.told == [None]
    del side.target.refuses["east.orders"]
    side.refresh(False)
    assert side.told == [CAME_THROUGH]


@pytest.mark.parametrize("ends", [False, True])
def test_what_an_earlier_process_was_refused_is_over_where_nothing_needs_it(
    side: Side, ends: bool
) -> None:
    """By then the flow has come to the end of the stage."""
    refused_before(side)
    side.topics.caught_up()
    side.topics.flow_ends() if ends else side.refresh(False)
    assert side.told == [CAME_THROUGH]


@pytest.mark.parametrize("silent", [False, True])
def test_what_is_not_selected_any_more_is_over_at_once(side: Side, silent: bool) -> None:
    """It stayed open until the flow had come to the end of the stage."""
    refused_before(side)
    settings = side.flow.settings.model_copy(update={"topics": ("lines",)})
    side.flow = replace(side.flow, settings=settings)
    side.topics = side.process()
    side.source.refusal = AWAY if silent else None
    side.refresh(True)
    assert side.told == [CAME_THROUGH]


def test_a_staged_topic_that_is_there_again_is_one_of_the_source(side: Side) -> None:
    side.refresh(True)
    with pytest.raises(TopicsUnmade):
        side.topics.ensure([STAGED])
    side.source.make("orders", 0)
    assert side.refresh(False) == 1
    assert side.topics.closed().keys() == {"orders"} and side.told == [None]
    del side.target.refuses["east.orders"]
    assert side.refresh(False) == 1
    assert not side.topics.closed() and side.told == [CAME_THROUGH]


def test_what_is_decided_and_refused_is_told_until_it_has_begun(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was told of it while the source was silent; and each refresh between two batches,
    which does not try it, called it over."""
    monkeypatch.setattr(target_generations, "GONE_SECONDS", 0.0)
    side.target.refuses.clear()
    side.source.make("orders", 5)
    side.refresh(True)
    side.target.delete("east.orders")
    side.refresh(False)
    side.log.incidents.settle_all([IncidentKey(FLOW, "target_recreated", "orders")], "again")
    side.refuse()
    side.source.refusal = AWAY
    side.refresh(True)
    assert side.topics.closed()["orders"] is not None and side.told == [None]
    side.refresh(False)
    assert side.told == [None]
    side.source.refusal = None
    side.source.delete("orders")
    side.refresh(False)
    assert side.topics.decided() == {"orders"} and side.told == [None], "the flow tries it again"
    side.refresh(True)
    assert not side.topics.decided() and side.told == [None]
    side.target.refuses.clear()
    side.refresh(True)
    assert not side.topics.closed() and side.told == [CAME_THROUGH]
