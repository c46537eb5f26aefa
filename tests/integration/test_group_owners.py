"""What a group's owner does at the target is the owner's: a rewind stays, an excluded group is left
alone."""

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import LeaseTaken
from mirrorlake.groups import group_sync
from mirrorlake.groups.checkpoint_plan import REWOUND
from mirrorlake.groups.mover import sole_mover
from mirrorlake.lake.lake import Lake
from tests.support.clusters import ClusterPair
from tests.support.groups import checkpoints_of, delete_groups
from tests.support.kafka import create_topic, numbered, write
from tests.support.replication import FLOW, replicate_once, write_topology

RECORDS = 200
GROUPS = ("rewound", "excluded", "quick", "held")


@dataclass
class Scene:
    """A flow that has run once, with groups that stand at 100 on both sides."""

    clusters: ClusterPair
    topology: Path
    lake: Lake
    topic: str

    def group(self, kind: str) -> str:
        return f"{self.topic}-{kind}"

    def commit(self, side: str, kind: str, offset: int) -> None:
        """Commit a position as a group without members does."""
        bootstrap, topic = self._place(side)
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": self.group(kind),
                "enable.auto.commit": False,
            }
        )
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        consumer.close()

    def position(self, side: str, kind: str) -> int:
        """Where a group stands; negative is nowhere."""
        bootstrap, topic = self._place(side)
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": self.group(kind)})
        (place,) = consumer.committed([TopicPartition(topic, 0)], 20)
        consumer.close()
        return int(place.offset)

    def call(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """A command's exit code, and its document."""
        result = CliRunner().invoke(app, ["-c", str(self.topology), *arguments, "--json"])
        assert result.stdout, (result.output, result.exception)
        return result.exit_code, json.loads(result.stdout)

    def round(self) -> None:
        """One turn of control as after a restart."""
        checkpoints = checkpoints_of(self.topology, self.lake)
        checkpoints.source.checkpoint()
        checkpoints.target.sync()

    def _place(self, side: str) -> tuple[str, str]:
        return (
            (self.clusters.east, self.topic)
            if side == "east"
            else (self.clusters.west, f"east.{self.topic}")
        )


@pytest.fixture(scope="module")
def scene(
    spark: SparkSession, clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory
) -> Scene:
    topic = f"owners-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic)
    write(clusters.east, topic, numbered(RECORDS))
    settings = {"topics": [topic], "groups": [f"{topic}-.*"], "emit_checkpoints_enabled": True}
    topology = write_topology(
        tmp_path_factory.mktemp("owners"), clusters.east, clusters.west, settings
    )
    made = Scene(clusters, topology, None, topic)  # type: ignore[arg-type]
    for kind in GROUPS:
        made.commit("east", kind, 100)
    made.lake = replicate_once(spark, topology).lake
    assert [made.position("west", kind) for kind in GROUPS] == [100] * len(GROUPS)
    return made


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_a_group_that_read_on_at_the_target_is_not_set_back",
    "simulation/test_group_schedules.py::test_no_schedule_breaks_a_law_of_groups",
)
def test_a_rewind_at_the_target_stays_until_the_source_moves_on(scene: Scene) -> None:
    scene.commit("west", "rewound", 20)
    for _ in range(2):
        scene.round()
        assert scene.position("west", "rewound") == 20
    group = scene.group("rewound")
    code, shown = scene.call("groups", "--flow", FLOW, "--group", group)
    (row,) = shown["flows"][0]["groups"]
    assert (code, row["target_position"], row["reason"]) == (0, 20, REWOUND)
    code, moved = scene.call("failover", "--flow", FLOW, "--no-drain", "--group", group)
    assert (code, moved["groups"][0]["done"], moved["groups"][0]["detail"]) == (0, "there", REWOUND)
    assert scene.position("west", "rewound") == 20
    scene.commit("east", "rewound", 150)
    scene.round()
    assert scene.position("west", "rewound") == 150


def test_a_group_that_is_excluded_is_left_alone_whatever_was_known_of_it(scene: Scene) -> None:
    delete_groups(scene.clusters.west, [scene.group("excluded")])
    text = scene.topology.read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    document["flows"][FLOW]["groups_exclude"] = [scene.group("excluded")]
    scene.topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    try:
        scene.round()
    finally:
        scene.topology.write_text(text, encoding="utf-8")
    assert scene.position("west", "excluded") < 0


def test_a_consumer_that_comes_between_our_check_and_our_move_is_not_set_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It joins, commits and leaves while the positions of many other groups are read."""
    asked = group_sync.target_groups

    def asked_late(admin: Any, groups: Iterable[str], *starts: Any) -> Any:
        found = asked(admin, groups, *starts)
        scene.commit("west", "quick", 180)
        return found

    scene.commit("east", "quick", 120)
    monkeypatch.setattr(group_sync, "target_groups", asked_late)
    scene.round()
    assert scene.position("west", "quick") == 180


def test_group_sync_waits_while_a_command_moves_groups(scene: Scene) -> None:
    scene.commit("east", "held", 130)
    with sole_mover(scene.lake, load_topology(scene.topology).flow(FLOW)):
        with pytest.raises(LeaseTaken):  # a run with an end would end without them
            scene.round()
        assert scene.position("west", "held") == 100
    scene.round()
    assert scene.position("west", "held") == 130
