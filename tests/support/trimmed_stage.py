"""A stage from which retention has deleted what a flow had not produced."""

from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Maintenance
from mirrorlake.config.topology import load_topology
from mirrorlake.lake.maintain import maintain
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.lake_rows import ago
from tests.support.replication import (
    FLOW,
    in_catalog,
    lake_of,
    land_only,
    replicate_once,
    write_topology,
)


def trimmed(
    spark: SparkSession, clusters: ClusterPair, topic: str, tmp_path: Path, place: str = "path"
) -> Path:
    """A flow that has produced 30 of 50 staged records, was disabled, and lacks 19 that retention
    has deleted since."""
    create_topic(clusters.east, topic)
    write(clusters.east, topic, numbered(30))
    file = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic]})
    if place == "catalog":
        in_catalog(file)
    replicate_once(spark, file)
    write(clusters.east, topic, numbered(20, start=30))
    land_only(spark, file)
    delete_all_but_the_newest(spark, file)
    return file


def delete_all_but_the_newest(spark: SparkSession, file: Path) -> None:
    """Delete what the flow, which is disabled meanwhile, has not produced."""
    enable(file, False)
    kept = Maintenance(retention_days=1, disabled_hold_days=1)
    with pytest.MonkeyPatch.context() as patch:  # as if what is there had landed long ago
        patch.setattr("mirrorlake.lake.maintain._days_ago", lambda _days: ago(0))
        removed = maintain(lake_of(spark, file), load_topology(file), kept)["records"]["removed"]
    assert removed, "the newest one stays"
    enable(file, True)


def enable(file: Path, enabled: bool) -> None:
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["flows"][FLOW]["enabled"] = enabled
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
