"""Source order holds whoever reads the stage, and the fast reader is really taken where it can
be."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.landing.ranges import UNDIVIDED
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.lanes import BOTH_LANES
from tests.support.replication import (
    assert_same,
    lake_of,
    land_only,
    replicate_once,
    write_topology,
)

pytestmark = BOTH_LANES

PARTITIONS = 3
LANDING = {"max_records_per_batch": 2_000}


@pytest.mark.wide(
    "integration/test_fidelity.py::test_workers_read_the_files_themselves",
    "integration/test_fidelity.py::test_workers_read_the_files_themselves",
)
def test_both_readers_are_exact_and_files_are_the_ordinary_one(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [topic_name]}, LANDING
    )
    create_topic(clusters.east, topic_name, PARTITIONS)
    for start, wanted, reader in (
        (0, "rows", "rows"),
        (2_000, "auto", "files"),
        (4_000, "rows", "rows"),
    ):
        write(clusters.east, topic_name, numbered(2_000, PARTITIONS, start))
        run = replicate_once(spark, topology, wanted)
        assert run.readers == {reader}
    assert_same(run.lake, clusters.east, clusters.west, {topic_name: f"east.{topic_name}"}, 6_000)


@pytest.mark.wide(
    "integration/test_fidelity.py::test_workers_read_the_files_themselves",
    "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
)
def test_the_files_of_a_batch_share_one_large_partition(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """It goes on from one file to the next, which are read in that order without sorting."""
    count = 2 * UNDIVIDED
    landing = {"max_records_per_batch": count, "files_per_batch": 2, "small_batch_records": 0}
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [topic_name]}, landing
    )
    create_topic(clusters.east, topic_name, 1)
    write(clusters.east, topic_name, numbered(count))
    run = replicate_once(spark, topology)
    files = run.lake.sql(
        "SELECT count(*) AS held FROM records WHERE topic = :topic GROUP BY _metadata.file_name",
        {"topic": topic_name},
    )
    assert [row.held for row in files.collect()] == [count // 2, count // 2]
    assert run.readers == {"files"}
    assert_same(run.lake, clusters.east, clusters.west, {topic_name: f"east.{topic_name}"}, count)


@pytest.mark.wide(
    "simulation/test_found.py::test_rows_that_a_compaction_turned_round_are_not_written_in_that_order"
)
@pytest.mark.parametrize("vacuum", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_new_flow_on_an_optimized_stage_keeps_order(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path, vacuum: bool
) -> None:
    """The stage was landed for a flow of other names; a new flow reads it after OPTIMIZE has
    shuffled its files."""
    flow = {"topics": [topic_name]}
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow, LANDING)
    create_topic(clusters.east, topic_name, PARTITIONS)
    write(clusters.east, topic_name, numbered(4_000, PARTITIONS))
    lake = lake_of(spark, topology)
    land_only(spark, topology)
    lake.sql("OPTIMIZE records ZORDER BY (batch_id, offset)")
    if vacuum:
        lake.upkeep("records").vacuum(0)
    write(clusters.east, topic_name, numbered(1_000, PARTITIONS, 4_000))
    run = replicate_once(spark, topology)
    assert_same(run.lake, clusters.east, clusters.west, {topic_name: f"east.{topic_name}"}, 5_000)
