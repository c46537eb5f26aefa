"""In a catalog, where Spark commits, thousands of incidents are told in one commit and closed in
one, too."""

import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.lake import Lake as Location
from mirrorlake.errors import ReplicationError
from mirrorlake.lake.incidents import Incident, Incidents
from mirrorlake.lake.opening import open_lake

PARTITIONS, FLOWS = 2_000, ("east->west", "east->north")


@pytest.mark.slow
def test_two_thousand_partitions_of_two_flows(spark: SparkSession, tmp_path: Path) -> None:
    schema = f"l{uuid.uuid4().hex[:8]}"
    place = Location(
        catalog="spark_catalog", schema=schema, checkpoints=str(tmp_path / "checkpoints")
    )
    lake = open_lake(spark, place, tmp_path)
    found = [
        Incident(
            flow, "source_refused", ReplicationError("no leader", topic="wide", partition=number)
        )
        for flow in FLOWS
        for number in range(PARTITIONS)
    ]
    incidents, version = Incidents(lake), lake.version_of("incidents")
    try:
        for _plan in range(2):
            incidents.report(found)
        assert lake.version_of("incidents") == version + 1
        incidents.close(lambda key: key.flow == FLOWS[0] or key.partition != 7)
        # A MERGE may be followed by a commit of Delta's own that compacts what it wrote.
        assert lake.version_of("incidents") <= version + 3
        (left,) = lake.ask_table("open_incidents")
        assert (left["flow"], left["topic"], left["partition"]) == (FLOWS[1], "wide", 7)
    finally:
        spark.sql(f"DROP SCHEMA {schema} CASCADE")
