"""A refused record stops its partition, and its incident stays open for as long as that is so; or
it is parked."""

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import TargetRefused
from mirrorlake.failpoints import PARK_POINTS
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.run.resolve import Wanted, resolve
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, numbered, read_topic, write
from tests.support.lanes import BOTH_LANES
from tests.support.replication import (
    FLOW,
    Run,
    Sides,
    both_sides,
    finish,
    lake_of,
    land_only,
    replicate_once,
    start_run,
    write_topology,
)

pytestmark = BOTH_LANES


def optimize(lake: Lake) -> int:
    """Compact the stage; returns how many files became fewer."""
    return int(lake.sql("OPTIMIZE records").collect()[0]["metrics"]["numFilesRemoved"])


@pytest.mark.slow
def test_a_refused_record_in_a_backlog_stays_an_incident(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """All is staged, and compacted, before the flow produces anything, as for a flow that is new to
    an old stage."""
    topic = f"refused-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic, 2)
    create_topic(clusters.west, f"east.{topic}", 2, max_message_bytes="5000")
    topology = write_topology(
        tmp_path,
        clusters.east,
        clusters.west,
        {"topics": [topic], "sync_topic_configs_enabled": False},
        {"max_records_per_batch": 100},
    )
    write(clusters.east, topic, numbered(100, 2))
    write(clusters.east, topic, [NewRecord(os.urandom(20_000), None, 0)])
    write(clusters.east, topic, numbered(100, 2, 100))
    land_only(spark, topology)
    assert optimize(lake_of(spark, topology)) > 1, "there was something to compact"
    told = "flow, kind, topic, partition, first_offset, last_offset, resolution"
    for _ in range(2):
        with pytest.raises(TargetRefused):
            replicate_once(spark, topology)
        rows = mirrorlake.open(topology).rows(f"SELECT {told} FROM incidents")
        assert [tuple(row.values()) for row in rows] == [
            (FLOW, "target_refused", topic, 0, 50, 50, None)
        ]
    assert [len(records) for records in read_topic(clusters.west, f"east.{topic}")] == [50, 100]


#: What the target takes, bytes of a compressed batch, and what is more than that.
LIMIT, TOO_LARGE = 5_000, 6_000


@dataclass(frozen=True)
class Scene:
    """A flow whose target takes records of up to LIMIT bytes."""

    topology: Path
    topic: str
    clusters: ClusterPair

    @property
    def names(self) -> Mapping[str, str]:
        return {self.topic: f"east.{self.topic}"}

    def write(self, *sizes: int, partition: int = 0) -> None:
        """Records of some sizes that cannot be compressed."""
        write(
            self.clusters.east,
            self.topic,
            [NewRecord(os.urandom(size), None, partition) for size in sizes],
        )

    def parked(self) -> list[tuple[int, int, str, int]]:
        """Partition, offset, reason and size of what is parked."""
        rows = mirrorlake.open(self.topology).rows(
            "SELECT * FROM parked ORDER BY partition, offset"
        )
        assert {(row["flow"], row["topic"], row["replayed_at"]) for row in rows} <= {
            (FLOW, self.topic, None)
        }
        return [(row["partition"], row["offset"], row["reason"], row["byte_count"]) for row in rows]

    def is_mirrored_but(self, lake: Lake, left_out: set[tuple[int, int]]) -> Sides:
        """All but some (partition, offset) are at the target once, in order and as they were, and
        mapped."""
        sides = both_sides(lake, self.clusters.east, self.clusters.west, self.names)
        for partition, there in enumerate(sides.source[self.topic]):
            here = sides.target[f"east.{self.topic}"][partition]
            wanted = [record for record in there if (partition, record.offset) not in left_out]
            assert [record[1:] for record in here] == [record[1:] for record in wanted], partition
            pairs = zip(
                (record.offset for record in wanted),
                (record.offset for record in here),
                strict=True,
            )
            assert sorted(sides.mapped[self.topic, partition]) == list(pairs)
        return sides


def new_scene(
    clusters: ClusterPair, folder: Path, landing: Mapping[str, int] | None = None, **flow: str
) -> Scene:
    topic = f"parked-{uuid.uuid4().hex[:8]}"
    create_topic(clusters.east, topic, 2)
    create_topic(clusters.west, f"east.{topic}", 2, max_message_bytes=str(LIMIT))
    settings = {"topics": [topic], "sync_topic_configs_enabled": False, **flow}
    return Scene(
        write_topology(folder, clusters.east, clusters.west, settings, landing), topic, clusters
    )


def test_refused_records_are_parked_and_the_rest_goes_on(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """Thirty of two hundred, first and last ones and neighbours among them, between records that
    are large only until they are compressed; a run finds them in few batches. Twice, and by the
    library's `verify` and `status`."""
    scene = new_scene(clusters, tmp_path, on_refused="park")
    sizes = [TOO_LARGE + at if at % 7 == 0 or at in (1, 199) else 40 for at in range(200)]
    scene.write(*sizes)
    write(clusters.east, scene.topic, [NewRecord(bytes(60_000), None, 0), *numbered(20)])
    scene.write(40, TOO_LARGE, partition=1)
    run = replicate_once(spark, scene.topology)
    refused = {(0, at) for at, size in enumerate(sizes) if size > LIMIT} | {(1, 1)}
    scene.is_mirrored_but(run.lake, refused)
    assert scene.parked() == [
        (partition, at, "MSG_SIZE_TOO_LARGE", TOO_LARGE if partition else sizes[at])
        for partition, at in sorted(refused)
    ]
    assert len(run.reports) <= 4, "they were found one by one"
    scene.write(40, TOO_LARGE, 40, partition=1)
    scene.is_mirrored_but(replicate_once(spark, scene.topology).lake, refused | {(1, 3)})
    assert len(scene.parked()) == len(refused) + 1
    lake = mirrorlake.open(str(scene.topology))
    status = lake.status()
    assert status.healthy, status.alerts
    assert [row["parked"] for row in status.flows] == [len(refused) + 1]
    verified = lake.verify()
    assert verified.differences == [] and verified.excused["parked"] == len(refused) + 1, verified


@pytest.mark.wide("test_refused_records_are_parked_and_the_rest_goes_on")
def test_a_record_of_another_file_is_not_blamed(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """The last record of one file of the stage goes to the broker in one batch with the first ones
    of the next, of which one is too large: the broker refuses the batch."""
    scene = new_scene(clusters, tmp_path, on_refused="park")
    scene.write(40)
    land_only(spark, scene.topology)
    scene.write(40, TOO_LARGE, 40)
    land_only(spark, scene.topology)
    run = replicate_once(spark, scene.topology)
    scene.is_mirrored_but(run.lake, {(0, 2)})
    assert [at for _, at, _, _ in scene.parked()] == [2]


@pytest.mark.slow
def test_thousands_are_found_in_few_batches(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """A thousand of ten thousand: not a batch for each."""
    scene = new_scene(clusters, tmp_path, on_refused="park")
    document = yaml.safe_load(scene.topology.read_text(encoding="utf-8"))
    document["clusters"]["west"]["producer"] = {"batch.size": LIMIT - 1_000}  # as `plan` says
    scene.topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    scene.write(*(TOO_LARGE + at % 997 if at % 10 == 3 else 100 for at in range(10_000)))
    land_only(spark, scene.topology)
    began = time.monotonic()
    run = replicate_once(spark, scene.topology)
    seconds, refused = time.monotonic() - began, {(0, at) for at in range(10_000) if at % 10 == 3}
    scene.is_mirrored_but(run.lake, refused)
    assert len(scene.parked()) == len(refused)
    batches = len(run.reports)
    print(f"{len(refused)} records parked in {seconds:.1f} s and {batches} batches")  # noqa: T201
    assert len(run.reports) <= 20


@pytest.mark.wide("test_refused_records_are_parked_and_the_rest_goes_on")
def test_an_operator_parks_what_stopped(
    spark: SparkSession, clusters: ClusterPair, tmp_path: Path
) -> None:
    """Only what the incident named: the next refused record stops the partition again."""
    scene = new_scene(clusters, tmp_path)
    scene.write(40, TOO_LARGE, 40, TOO_LARGE, 40)
    for decided in ([1], [1, 3]):
        with pytest.raises(TargetRefused):
            replicate_once(spark, scene.topology)
        lake = lake_of(spark, scene.topology)
        (incident,) = resolve(
            Deployment.opened(lake, Connections(load_topology(scene.topology))),
            Wanted(topic=scene.topic),
            "park",
        ).decided
        assert incident["first_offset"] == decided[-1]
    run = replicate_once(spark, scene.topology)
    scene.is_mirrored_but(run.lake, {(0, 1), (0, 3)})
    assert [at for _, at, _, _ in scene.parked()] == [1, 3]


@pytest.mark.wide(
    "test_refused_records_are_parked_and_the_rest_goes_on",
    "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
)
@pytest.mark.parametrize(
    ("points", "landing"),
    [
        (PARK_POINTS, None),
        pytest.param(
            (*PARK_POINTS, "kafka-committed", "mapped"),
            {"small_batch_records": 0},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["no session", "session"],
)
def test_killed_while_records_are_parked(
    spark: SparkSession,
    clusters: ClusterPair,
    tmp_path: Path,
    points: Sequence[str],
    landing: Mapping[str, int] | None,
) -> None:
    """After each point between the refusal and going on, another run goes on where that one died:
    each record is at the target once, or parked once."""
    scene = new_scene(clusters, tmp_path, landing, on_refused="park")
    left_out: set[tuple[int, int]] = set()
    for point in points:
        once = tmp_path / f"once-{point}"
        environment = {"MIRRORLAKE_CRASH": f"{point}:driver", "MIRRORLAKE_CRASH_ONCE": str(once)}
        left_out.add((0, 1 + 3 * len(left_out)))
        scene.write(40, TOO_LARGE, 40)
        code = finish(start_run(scene.topology, "--once", **environment))
        assert once.exists() and code == -9, (
            point,
            (tmp_path / "run.log").read_text(encoding="utf-8"),
        )
    run: Run = replicate_once(spark, scene.topology)
    scene.is_mirrored_but(run.lake, left_out)
    assert {(partition, at) for partition, at, _, _ in scene.parked()} == left_out
    assert len(scene.parked()) == len(left_out)
