"""Groups in a generation of a topic that is over: a position is of a generation, and is moved by
the newest."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from confluent_kafka import KafkaException

from mirrorlake.config.topology import load_topology
from mirrorlake.groups.checkpoint_plan import REWOUND
from mirrorlake.groups.checkpoint_table import positions_as_of
from mirrorlake.groups.group_sync import GroupTurns
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.offsets.positions import Committed
from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake
from tests.support.groups import checkpoints_of, commit, position
from tests.support.kafka import create_topic, delete_topic, read_topic, topics_of, truncate
from tests.support.lake_rows import now_of
from tests.support.replication import write_topology
from tests.support.rewind import rewind
from tests.support.topologies import fill
from tests.support.waiting import until

ALWAYS = 1 << 50


@dataclass
class Scene:
    """A topic of one partition, mirrored by runs that open no session."""

    clusters: ClusterPair
    topic: str
    topology: Path

    @property
    def mirror(self) -> str:
        return f"east.{self.topic}"

    def run(self, tag: str, count: int, code: int = 0) -> None:
        fill(self.clusters.east, self.topic, tag, count, 1)
        mirrorlake(self.topology, "run", "--once", code=code)

    def run_in_batches(self) -> None:
        """As `run` with 40 records, in batches of their own, at which `cut` can cut the log."""
        if self.clusters.embedded is None:
            pytest.skip("the brokers' disks are not ours to change")
        for number in range(4):
            fill(self.clusters.east, self.topic, "a", 10, 1, start=10 * number)
        mirrorlake(self.topology, "run", "--once")

    def cut(self, offset: int) -> None:
        """The log at the source goes back to an offset."""
        assert self.clusters.embedded is not None
        rewind(self.clusters.embedded["east"], f"{self.topic}-0", offset)

    def make_again(self, tag: str, count: int) -> None:
        """The topic is deleted and made again at the source, and goes on as an operator says."""
        self.make_anew()
        self.goes_on(tag, count)

    def make_anew(self) -> None:
        """The topic is deleted and made again at the source."""
        delete_topic(self.clusters.east, self.topic)
        until(lambda: self.topic not in topics_of(self.clusters.east), "the topic is gone")
        create_topic(self.clusters.east, self.topic)

    def goes_on(self, tag: str, count: int) -> None:
        self.run(tag, count, code=1)
        mirrorlake(self.topology, "resolve", "--topic", self.topic, "--choice", "new-generation")
        mirrorlake(self.topology, "run", "--once")

    def place(self, value: str) -> int:
        """The offset of a record at the target."""
        (found,) = [
            one.offset
            for one in read_topic(self.clusters.west, self.mirror)[0]
            if one.value == value.encode()
        ]
        return found

    def stand(self, group: str, at: int) -> None:
        until(
            lambda: self._answers(group),
            "the group's coordinator at the source has loaded what it has",
        )
        commit(self.clusters.west, f"{self.topic}-{group}", self.mirror, at)

    def failback(self, *groups: str, code: int = 0) -> dict[str, dict[str, object]]:
        named = [word for group in groups for word in ("--group", f"{self.topic}-{group}")]
        said = mirrorlake(
            self.topology, "failback", "--flow", "east->west", *named, "--no-drain", code=code
        )
        assert said["complete"] is (code == 0) and bool(said["left"]) is (code == 1)
        return {row["group"].removeprefix(f"{self.topic}-"): row for row in said["groups"]}

    def lose_source(self) -> None:
        """The source does not answer any more."""
        document = yaml.safe_load(self.topology.read_text(encoding="utf-8"))
        document["clusters"]["east"]["bootstrap_servers"] = "127.0.0.1:1"
        self.topology.write_text(yaml.safe_dump(document), encoding="utf-8")

    def failover(self, code: int = 0) -> dict[str, dict[str, object]]:
        """All groups are moved without the source, by what was noted of them."""
        said = mirrorlake(
            self.topology,
            "failover",
            "--flow",
            "east->west",
            "--all-groups",
            "--no-drain",
            code=code,
        )
        assert (
            said["origin_unreachable"]
            and said["complete"] is (code == 0)
            and bool(said["left"]) is (code == 1)
        )
        return {row["group"].removeprefix(f"{self.topic}-"): row for row in said["groups"]}

    def note(self, generation: int, **groups: int) -> None:
        """Groups commit at the source, and a process that has just started notes where they are."""
        for group, at in groups.items():
            commit(self.clusters.east, f"{self.topic}-{group}", self.topic, at)
        restarted(self, generation).source.checkpoint()

    def at_target(self, group: str) -> int | None:
        return position(self.clusters.west, f"{self.topic}-{group}", self.mirror)

    def _answers(self, group: str) -> bool:
        try:
            self.at_source(group)
        except KafkaException:
            return False
        return True

    def at_source(self, group: str) -> int | None:
        return position(self.clusters.east, f"{self.topic}-{group}", self.topic)


@pytest.fixture
def scene(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Scene:
    settings = {"topics": [topic_name], "groups": [f"{topic_name}.*"]}
    create_topic(clusters.east, topic_name)
    return Scene(
        clusters, topic_name, write_topology(tmp_path, clusters.east, clusters.west, settings)
    )


@pytest.mark.wide("simulation/test_group_schedules.py::test_no_schedule_breaks_a_law_of_groups")
@pytest.mark.law("kept by generation", "never more than was seen", session="without")
def test_a_group_in_records_of_a_topic_that_is_gone_begins_the_new_one(scene: Scene) -> None:
    scene.run("a", 50)
    scene.make_again("b", 20)
    scene.stand("amid", scene.place("a:40"))
    scene.stand("past", scene.place("a:49") + 1)
    scene.stand("new", scene.place("b:7"))
    moved = scene.failback("past", "new")
    assert all(row["exact"] and row["read_again_at_most"] == 0 for row in moved.values())
    assert (scene.at_source("past"), scene.at_source("new")) == (0, 7)
    row = scene.failback("amid", code=1)["amid"]
    assert (row["done"], row["exact"], row["gone_at_most"]) == ("moved", False, 10)
    assert scene.at_source("amid") == 0
    asked = [
        "--flow",
        "east->west",
        "--topic",
        scene.mirror,
        "--partition",
        "0",
        "--offset",
        str(scene.place("a:40")),
    ]
    assert mirrorlake(scene.topology, "translate", *asked, "--reverse")["offset"] == 40, (
        "history is told as it was"
    )


@pytest.mark.wide("simulation/test_group_schedules.py::test_no_schedule_breaks_a_law_of_groups")
@pytest.mark.law("kept by generation", session="without")
def test_no_group_goes_back_to_a_topic_that_was_made_again_before_an_operator_decides(
    scene: Scene,
) -> None:
    """Its offset in the log before lies in the new one, too: what is in front of that there would
    be skipped."""
    scene.run("a", 50)
    scene.stand("amid", scene.place("a:40"))
    scene.make_anew()
    fill(scene.clusters.east, scene.topic, "b", 60, 1)
    assert scene.failback("amid", code=1) == {} and scene.at_source("amid") is None
    scene.goes_on("c", 1)
    assert scene.failback("amid", code=1)["amid"]["gone_at_most"] == 10
    assert scene.at_source("amid") == 0


@pytest.mark.wide("simulation/test_group_schedules.py::test_no_schedule_breaks_a_law_of_groups")
@pytest.mark.law("kept by generation", session="without")
def test_a_group_behind_the_place_where_a_log_went_back_begins_there(scene: Scene) -> None:
    scene.run_in_batches()
    scene.cut(20)
    scene.goes_on("b", 60)
    for group, value in (("below", "a:10"), ("above", "a:30"), ("new", "b:3")):
        scene.stand(group, scene.place(value))
    row = scene.failback("new")["new"]
    assert (row["exact"], scene.at_source("new")) == (True, 23)
    moved = scene.failback("below", "above", code=1)
    assert (scene.at_source("below"), scene.at_source("above")) == (10, 20)
    assert (moved["below"]["gone_at_most"], moved["above"]["gone_at_most"]) == (20, 10)


@pytest.mark.wide(
    "simulation/test_failover_schedules.py::test_no_schedule_moves_a_group_past_what_it_has_not_read"
)
@pytest.mark.law("kept by generation", "never more than was seen", session="without")
def test_without_the_source_a_group_reads_on_in_what_is_left_of_a_topic_that_is_gone(
    scene: Scene,
) -> None:
    """What a group had not read of the old topic is at the target still; then come the records of
    the new one."""
    scene.run("a", 50)
    scene.note(0, amid=40, past=50)
    scene.make_again("b", 20)
    scene.note(1, new=7)
    scene.lose_source()
    moved = scene.failover()
    wanted = {
        "amid": scene.place("a:40"),
        "past": scene.place("a:49") + 1,
        "new": scene.place("b:7"),
    }
    assert {group: scene.at_target(group) for group in wanted} == wanted
    assert all(row["exact"] and row["gone_at_most"] == 0 for row in moved.values())
    assert moved["amid"]["read_again_at_most"] >= 30, "how far it came since nobody knows"


@pytest.mark.wide(
    "simulation/test_failover_schedules.py::test_no_schedule_moves_a_group_past_what_it_has_not_read"
)
@pytest.mark.law("kept by generation", session="without")
def test_without_the_source_a_group_reads_on_behind_the_place_where_a_log_went_back(
    scene: Scene,
) -> None:
    scene.run_in_batches()
    scene.note(0, below=10, above=30)
    scene.cut(20)
    scene.goes_on("b", 60)
    scene.lose_source()
    scene.failover()
    assert (scene.at_target("below"), scene.at_target("above")) == (
        scene.place("a:10"),
        scene.place("a:30"),
    )


@pytest.mark.wide("simulation/test_group_schedules.py::test_no_schedule_breaks_a_law_of_groups")
@pytest.mark.law("kept by generation", "nothing silently", session="without")
def test_what_a_mirror_has_no_more_of_a_topic_that_is_gone_is_said_without_the_source(
    scene: Scene,
) -> None:
    """Retention has taken at the target what a group in the old topic had not read."""
    scene.run("a", 50)
    scene.note(0, amid=20)
    scene.make_again("b", 20)
    scene.lose_source()
    start = scene.place("a:30")
    truncate(scene.clusters.west, scene.mirror, start)
    row = scene.failover(code=1)["amid"]
    assert (row["to_position"], row["gone_at_most"], scene.at_target("amid")) == (start, 10, start)


def no_session() -> "object":
    raise AssertionError("a session was asked for")


def restarted(scene: Scene, generation: int) -> GroupTurns:
    """Group positions as a process that has just started keeps them."""
    return checkpoints_of(scene.topology, lake_of(scene), generation)


def lake_of(scene: Scene) -> Lake:
    return open_lake(no_session, load_topology(scene.topology).lake, scene.topology.parent)  # type: ignore[arg-type]


@pytest.mark.wide("simulation/test_group_schedules.py::test_no_schedule_breaks_a_law_of_groups")
@pytest.mark.law("never backwards", "kept by generation", session="without")
def test_what_its_owner_set_back_stays_through_a_restart_of_a_topic_made_again(
    scene: Scene,
) -> None:
    scene.run("a", 50)
    scene.make_again("b", 20)
    group = f"{scene.topic}-app"
    commit(scene.clusters.east, group, scene.topic, 15)
    groups = restarted(scene, 1)
    groups.source.checkpoint()
    groups.target.sync()
    there = scene.place("b:15")
    assert position(scene.clusters.west, group, scene.mirror) == there
    scene.stand("app", there - 10)
    for _ in range(2):
        groups = restarted(scene, 1)
        groups.source.checkpoint()
        groups.target.sync()
        assert position(scene.clusters.west, group, scene.mirror) == there - 10
    (row,) = now_of(lake_of(scene)).table_rows("group_positions")
    assert (row["generation"], row["source_position"], row["reason"]) == (1, 15, REWOUND)
    assert restarted(scene, 0).source.checkpoint()[0].generation == 0, (
        "the row of generation 1 says nothing of another one"
    )


@pytest.mark.wide(
    "integration/test_group_owners.py::test_a_group_that_is_excluded_is_left_alone_whatever_was_known_of_it"
)
@pytest.mark.law("nothing silently", session="without")
def test_a_group_whose_topic_is_not_selected_any_more_is_not_gone(
    scene: Scene, tmp_path: Path
) -> None:
    scene.run("a", 50)
    group = f"{scene.topic}-app"
    commit(scene.clusters.east, group, scene.topic, 15)
    restarted(scene, 0).source.checkpoint()
    settings = {"topics": [f"{scene.topic}-other"], "groups": [f"{scene.topic}.*"]}
    write_topology(tmp_path, scene.clusters.east, scene.clusters.west, settings)
    assert restarted(scene, 0).source.checkpoint() == []
    positions = positions_as_of(now_of(lake_of(scene)), "east", ALWAYS)
    assert positions == {(group, scene.topic, 0): (Committed(15), 0)}
