"""Records leave the lake by a predicate, and nothing else changes: the map stays exact, what is
forgotten is neither read again nor sent, and a process that is killed meanwhile leaves nothing
undone."""

import json
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import mirrorlake
from mirrorlake import failpoints
from mirrorlake.cli.main import app
from mirrorlake.failpoints import FORGET_POINTS
from mirrorlake.lake.lake import Lake
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, read_topic, write
from tests.support.lake_rows import now_of
from tests.support.replication import (
    QUIET,
    both_sides,
    finish,
    in_catalog,
    land_only,
    replicate_once,
    replicating,
    start_command,
    write_topology,
)

#: Whose records are picked, by a key that is nowhere else: digits would be in some time or
#: identifier of a table's log.
PEOPLE = ("ann", "bob", "eve")
HOST = "@people.example"
KEY = "{}" + HOST


@dataclass
class Scene:
    """A flow, and what was forgotten of its topic: (partition, offset)."""

    topology: Path
    topic: str
    clusters: ClusterPair
    written: int = 0
    gone: set[tuple[int, int]] = field(default_factory=set)
    never_sent: set[tuple[int, int]] = field(default_factory=set)

    @property
    def names(self) -> Mapping[str, str]:
        return {self.topic: f"east.{self.topic}"}

    def write(self, count: int = 60) -> None:
        """Records of all people in turn, in two partitions; the last ones are Eve's."""
        numbers = range(self.written, self.written + count)
        records = [
            NewRecord(b"%d" % at, KEY.format(PEOPLE[at // 2 % 3]).encode(), at % 2)
            for at in numbers
        ]
        write(self.clusters.east, self.topic, records)
        self.written += count

    def of(self, person: str, since: int = 0) -> set[tuple[int, int]]:
        """Where a person's records are."""
        return {
            (at % 2, at // 2) for at in range(since, self.written) if PEOPLE[at // 2 % 3] == person
        }

    def is_whole(self, lake: Lake) -> None:
        """All but what was forgotten is staged, and all but what was never sent is at the target,
        and mapped."""
        sides = both_sides(lake, self.clusters.east, self.clusters.west, self.names)
        for partition, there in enumerate(sides.source[self.topic]):
            here = sides.target[f"east.{self.topic}"][partition]
            sent = [record for record in there if (partition, record.offset) not in self.never_sent]
            assert [record[1:] for record in here] == [record[1:] for record in sent]
            pairs = zip(
                (record.offset for record in sent), (record.offset for record in here), strict=True
            )
            assert sorted(sides.mapped[self.topic, partition]) == list(pairs)
            kept = [
                record.offset for record in there if (partition, record.offset) not in self.gone
            ]
            assert sorted(sides.staged[self.topic, partition]) == kept

    def forget(self, person: str, **options: bool) -> mirrorlake.Forgotten:
        return mirrorlake.open(str(self.topology)).forget(self.topic, picked(person), **options)


def picked(person: str) -> str:
    """The predicate for a person's records."""
    return f"CAST(key AS STRING) = '{KEY.format(person)}'"


def new_scene(clusters: ClusterPair, folder: Path) -> Scene:
    topic = f"forget-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic, 2)
    scene = Scene(
        write_topology(folder, clusters.east, clusters.west, {"topics": [topic]}), topic, clusters
    )
    scene.write()
    return scene


@pytest.mark.law("exactly once", "never more than was seen")
@pytest.mark.parametrize("place", ["path", pytest.param("catalog", marks=pytest.mark.slow)])
def test_what_is_forgotten_stays_so(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, place: str
) -> None:
    """Of what is mapped, what is only staged, the last record of each partition: deleted, while no
    process runs; it is not landed again, not even without checkpoints, and not sent."""
    scene = new_scene(clusters, tmp_path)
    if place == "catalog":
        in_catalog(scene.topology)
    replicate_once(spark, scene.topology)
    produced = scene.written
    scene.write()
    land_only(spark, scene.topology)
    scene.gone, scene.never_sent = scene.of("eve"), scene.of("eve", produced)
    assert max(scene.gone) == (1, 59)
    looked = scene.forget("eve", dry_run=True)
    assert (looked.records, looked.waiting, looked.deleted_at) == (len(scene.gone), 0, None)
    done = scene.forget("eve")
    assert (done.records, done.waiting, done.waits) == (len(scene.gone), 0, [])
    assert [row["topic"] for row in done.topics] == [scene.topic] and done.files > 0
    assert (
        done.gone_after is not None
        and done.deleted_at is not None
        and done.gone_after > done.deleted_at
    )
    assert scene.forget("eve").records == 0
    run = replicate_once(spark, scene.topology)
    scene.is_whole(run.lake)
    if place == "path":
        shutil.rmtree(tmp_path / "lake" / "_checkpoints")
    scene.write()
    run = replicate_once(spark, scene.topology)
    scene.is_whole(run.lake)
    lake = mirrorlake.open(str(scene.topology))
    assert lake.status().healthy
    verified = lake.verify()
    assert verified.differences == [] and verified.excused == {"forgotten": len(scene.gone)}
    told = now_of(run.lake).rows("SELECT after FROM changes WHERE kind = 'forget'")
    assert told == [{"after": f"{done.forget_id}: {len(scene.gone)} records of {scene.topic}"}]
    if place == "path":
        logs = [*(tmp_path / "lake").rglob("_delta_log/*.json")]
        assert len(logs) > 10 and not [
            path for path in logs if HOST in path.read_text(encoding="utf-8")
        ]


@pytest.mark.wide("test_what_is_forgotten_stays_so")
def test_what_a_flow_still_needs_waits(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its map rows were lost with the process: they are told by counting staged records, so none of
    those goes. While it runs, what is mapped does."""
    scene = new_scene(clusters, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("mirrorlake.produce.map_writer.MapWriter._append_all", lambda _self: None)
        replicate_once(spark, scene.topology)
    waiting = scene.forget("ann")
    assert (waiting.records, waiting.waiting) == (0, len(scene.of("ann")))
    assert [row["flow"] for row in waiting.waits] == [
        "east->west"
    ] and "run it once" in waiting.waits[0]["why"]
    with replicating(spark, scene.topology) as run:
        while len(run.reports) < 1 or scene.forget("ann", dry_run=True).waiting:
            pass  # each call takes as long as a query
        scene.gone = scene.of("ann")
        assert scene.forget("ann").records == len(scene.gone)
        scene.write()
    scene.is_whole(replicate_once(spark, scene.topology).lake)


class Death(BaseException):
    """What none catches, as none catches a kill."""


def dies_here(scene: Scene, person: str, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`forget` in this process, which comes no further than to a point."""

    def reached(at: str) -> None:
        if at == point:
            raise Death

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "reached", reached)
        with pytest.raises(Death):
            scene.forget(person)


def is_killed(scene: Scene, person: str, point: str, _: pytest.MonkeyPatch) -> None:
    """The command in a process of its own, which is killed there."""
    folder = scene.topology.parent
    once, where = folder / point, ("--where", picked(person))
    environment = {"MIRRORLAKE_CRASH": point, "MIRRORLAKE_CRASH_ONCE": str(once)}
    words = ("forget", "--topic", scene.topic, *where, "--yes")
    code = finish(start_command(scene.topology, *words, **environment))
    assert once.exists() and code == -9, (folder / "run.log").read_text(encoding="utf-8")


@pytest.mark.wide(
    "test_what_is_forgotten_stays_so",
    "simulation/test_found.py::test_a_task_that_begins_behind_a_forget_writes_nothing_of_what_goes",
)
@pytest.mark.parametrize("dies", [dies_here, pytest.param(is_killed, marks=pytest.mark.slow)])
def test_killed_while_it_forgets(
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dies: Callable[[Scene, str, str, pytest.MonkeyPatch], None],
) -> None:
    """Noted and not deleted, deleted and not said so: flows go on behind it, and the next call
    finishes."""
    scene = new_scene(clusters, tmp_path)
    land_only(spark, scene.topology)
    for point, person in zip(FORGET_POINTS, PEOPLE, strict=False):
        dies(scene, person, point, monkeypatch)
        scene.gone |= scene.of(person)
        if point == FORGET_POINTS[0]:
            scene.never_sent = scene.of(person)
            replicate_once(spark, scene.topology)
            assert scene.forget("nobody").finished == len(scene.gone)
    where = ("--topic", scene.topic, "--where", "false")
    asked = CliRunner().invoke(
        app, ["-c", str(scene.topology), "forget", "--json", "--yes", *where]
    )
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout)["records"] == 0
    left = mirrorlake.open(str(scene.topology)).rows(
        "SELECT 1 FROM forgotten WHERE deleted_at IS NULL"
    )
    assert left == []
    scene.write()
    scene.is_whole(replicate_once(spark, scene.topology).lake)


@pytest.mark.wide(
    "test_what_is_forgotten_stays_so",
    "unit/forget/test_forget_in_folder.py::test_what_a_resend_may_need_that_begins_meanwhile_stays",
)
def test_what_a_killed_call_has_noted_is_not_sent_again(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by a restore nor by a replay, though the stage still holds it; nor is it counted."""
    scene = new_scene(clusters, tmp_path)
    land_only(spark, scene.topology)
    dies_here(scene, "eve", FORGET_POINTS[0], monkeypatch)
    lake, again = mirrorlake.open(scene.topology, spark=spark), f"{scene.topic}-again"
    compacted = lake.restore("east", "west", [scene.topic], compacted=True, dry_run=True)
    assert compacted.records == 4, "two people, in two partitions"
    left = scene.written - len(scene.of("eve"))
    for sent, target in (
        (lake.restore("east", "west", [scene.topic]), scene.topic),
        (lake.replay(scene.topic, "true", again, source="east", cluster="west"), again),
    ):
        assert (sent.complete, sent.records, sent.warnings) == (True, left, [])
        keys = [record.key for records in read_topic(clusters.west, target) for record in records]
        assert len(keys) == left and KEY.format("eve").encode() not in keys
    assert lake.rows("SELECT 1 FROM forgotten WHERE deleted_at IS NULL"), "nothing has deleted it"


@pytest.mark.wide("test_what_is_forgotten_stays_so")
@pytest.mark.law("never more than was seen")
def test_other_places_that_hold_the_same_records_are_named(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """A person's records were replayed to a topic that another flow mirrors: they are staged there
    too, until they are forgotten there. The replay's predicate is in `changes`."""
    scene = new_scene(clusters, tmp_path)
    replicate_once(spark, scene.topology)
    lake, again = mirrorlake.open(scene.topology, spark=spark), f"{scene.topic}-again"
    replayed = lake.replay(scene.topic, picked("ann"), again, source="east", cluster="west")
    document = yaml.safe_load(scene.topology.read_text(encoding="utf-8"))
    document["flows"]["west->east"] = {**QUIET, "topics": [again]}
    scene.topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    replicate_once(spark, scene.topology)
    lake, count = mirrorlake.open(scene.topology, spark=spark), len(scene.of("ann"))
    forgotten = lake.forget(scene.topic, picked("ann"), source="east")
    assert (forgotten.records, forgotten.replays) == (count, [replayed.flow])
    assert forgotten.elsewhere == [{"source": "west", "topic": again, "records": count}]
    by_place = lake.forget(scene.topic, "offset = 0", source="east", dry_run=True)
    assert by_place.elsewhere == [{"source": "west", "topic": again, "records": None}]
    assert lake.forget(again, picked("ann"), source="west").records == count
    assert lake.forget(scene.topic, picked("ann"), source="east").elsewhere == []
