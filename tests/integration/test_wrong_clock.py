"""A clock that is wrong for a while, as before the time of the network came, or of another host:
nothing that was written is dropped, whether it is set right or steps while a flow runs."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.lake.lake import Lake
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, record_count, write
from tests.support.lake_rows import now_of
from tests.support.lanes import BOTH_LANES
from tests.support.replication import (
    assert_same,
    in_catalog,
    lake_of,
    replicate_once,
    replicating,
    write_topology,
)
from tests.support.topologies import incidents
from tests.support.waiting import until

pytestmark = BOTH_LANES
RECORDS = 40


@contextmanager
def clock(ahead: timedelta) -> Iterator[None]:
    """What this process's own code takes for the time is so far ahead, for the time of the block;
    clients and brokers have theirs."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Ahead":
            return super().now(tz) + ahead

    seconds, nanoseconds = time.time, time.time_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: seconds() + ahead.total_seconds())
        patch.setattr(time, "time_ns", lambda: nanoseconds() + int(ahead.total_seconds()) * 10**9)
        for name, module in list(sys.modules.items()):
            if name.startswith("mirrorlake.") and getattr(module, "datetime", None) is datetime:
                patch.setattr(module, "datetime", Ahead)
        yield


@pytest.mark.wide(
    "simulation/test_found.py::test_a_clock_that_was_wrong_at_the_last_start_drops_nothing"
)
@pytest.mark.law("exactly once", "exact map")
@pytest.mark.parametrize("place", ["folder", pytest.param("catalog", marks=pytest.mark.slow)])
@pytest.mark.parametrize("hours", [1, pytest.param(-1, marks=pytest.mark.slow)])
def test_nothing_is_dropped(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    place: str,
    hours: int,
) -> None:
    """At the last start it was an hour off, and is right now; then it steps while the flow runs,
    and is right again."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    if place == "catalog":
        in_catalog(topology)
    create_topic(clusters.east, topic_name, 2)
    mirror, written = f"east.{topic_name}", 0

    def write_more() -> None:
        nonlocal written
        write(clusters.east, topic_name, numbered(RECORDS, 2, written))
        written += RECORDS

    def is_whole(lake: Lake) -> None:
        assert_same(lake, clusters.east, clusters.west, {topic_name: mirror}, written)
        assert incidents(lake) == []
        for partition in (0, 1):  # by which a cut as of a time goes
            rows = now_of(lake).rows(
                f"SELECT batch_id FROM records WHERE topic = '{topic_name}' "
                f"AND partition = {partition} ORDER BY offset"
            )
            numbers = [row["batch_id"] for row in rows]
            assert numbers == sorted(numbers)

    off = timedelta(hours=hours)
    write_more()
    is_whole(replicate_once(spark, topology).lake)
    with clock(off):  # it takes over, and has nothing to do
        is_whole(replicate_once(spark, topology).lake)
    write_more()
    is_whole(replicate_once(spark, topology).lake)
    with replicating(spark, topology):
        for step in (-off, off, timedelta()):
            with clock(step):
                write_more()
                until(lambda: record_count(clusters.west, mirror) == written, "they arrive", 60)
    is_whole(lake_of(spark, topology))
