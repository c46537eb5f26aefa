"""Maintenance beside a running replicator, on real brokers: nothing is lost, twice, or told as an
incident."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.lake import table_upkeep
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.maintain import stage_of
from mirrorlake.lake.retention import cut_records
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, read_topics, write
from tests.support.lake_rows import ago, now_of
from tests.support.replication import replicate_once, replicating, write_topology

ROUNDS = 5
PER_ROUND = 400


def everything(lake: Lake, file: Path) -> int:
    """All of `maintain`, as if what landed up to now were old; gives how many records were
    deleted."""
    now = ago(0)
    cuts, _ = cut_records(*stage_of(lake, load_topology(file), now, now))
    removed = table_upkeep.remove_records(lake, cuts, int(now.timestamp() * 1000))
    for table in table_upkeep.HISTORY:
        table_upkeep.remove_history(lake, table, int(ago(5).timestamp() * 1000))
    table_upkeep.merge_map(lake, int(now.timestamp() * 1000))
    for table in ("records", "offset_map", "latency", "positions", "clusters", "objectives"):
        lake.upkeep(table).compact()
    lake.upkeep("records").vacuum(168)
    return removed


def mapped(lake: Lake) -> int:
    (row,) = now_of(lake).rows("SELECT coalesce(sum(record_count), 0) AS n FROM offset_map")
    return int(row["n"])


def modes(lake: Lake) -> dict[str, str]:
    """How the lake says that each flow runs."""
    return {row["flow"]: row["mode"] for row in lake.ask_table("objectives")}


@pytest.mark.timeout(1200)
@pytest.mark.slow
def test_the_replicator_runs_through_maintenance(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name, 3)
    flow = {"topics": [topic_name], "heartbeats_replication_enabled": False}
    file = write_topology(tmp_path, clusters.east, clusters.west, flow)
    removed = 0
    with replicating(spark, file) as run:
        for number in range(ROUNDS):
            write(clusters.east, topic_name, numbered(PER_ROUND, 3, start=number * PER_ROUND))
            removed += everything(run.lake, file)  # while this round is on its way
        deadline = time.monotonic() + 240
        while mapped(run.lake) < ROUNDS * PER_ROUND:
            assert time.monotonic() < deadline, mapped(run.lake)
            time.sleep(0.5)
        removed += everything(run.lake, file)
        assert run.lake.ask_table("incidents") == []
        assert modes(run.lake) == {"east->west": "continuous"}
    assert modes(run.lake) == {"east->west": "stopped"}
    assert len(run.lake.ask_table("records")) == ROUNDS * PER_ROUND - removed == 3, (
        "the newest of each partition stay"
    )

    # A flow that starts behind compacted and deleted commits, by either reader.
    for number, reader in enumerate(("auto", "rows"), start=ROUNDS):
        write(clusters.east, topic_name, numbered(PER_ROUND, 3, start=number * PER_ROUND))
        lake = replicate_once(spark, file, reader).lake
        removed += everything(lake, file)
    remote = f"east.{topic_name}"
    source = read_topics(clusters.east, [topic_name])[topic_name]
    target = read_topics(clusters.west, [remote])[remote]
    told = [[(record.key, record.value, record.timestamp) for record in part] for part in source]
    assert [
        [(record.key, record.value, record.timestamp) for record in part] for part in target
    ] == told
    assert sum(map(len, told)) == (ROUNDS + 2) * PER_ROUND == mapped(lake)
    assert modes(lake) == {"east->west": "once"}
    assert lake.ask_table("divergence") == []
    assert [row["alert"] for row in lake.ask_table("alerts")] == []
