"""What landing costs does not grow with its batches, and it goes on beside what fails."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceRegistration

from mirrorlake.config.cluster import Landing
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import LakeError, ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.catalog_lake import CatalogLake
from mirrorlake.landing import land, session_sink, stream_source
from mirrorlake.landing.checkpoints import begin_query
from mirrorlake.landing.job import LandJob, Part
from mirrorlake.landing.stage_rows import rows_of_parts
from mirrorlake.landing.stream_source import source_of
from mirrorlake.landing.unread import UnreadOffsets
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.causes import causes_of
from mirrorlake.spark.session import settings_for_now
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, read_topic, write
from tests.support.lake_rows import now_of
from tests.support.replication import (
    assert_same,
    finish,
    in_catalog,
    lake_of,
    land_only,
    replicate_once,
    start_run,
    write_topology,
)
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def without_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalog has views for other readers, which take Spark longer to make than what is landed
    here: none is asked."""
    monkeypatch.setattr(CatalogLake, "keep_views", lambda _lake, _most=None: None)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["path", "catalog"])
def test_no_batch_compiles_code_of_its_own(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path, place: str
) -> None:
    """The time of a batch, were it a literal in generated code, would make two new classes of every
    batch. What tasks write as files needs no code."""
    topology = write_topology(
        tmp_path,
        clusters.east,
        clusters.west,
        {"topics": [topic_name]},
        {"max_records_per_batch": 100},
    )
    if place == "catalog":
        in_catalog(topology)
    create_topic(clusters.east, topic_name, 1)
    generated = {
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.codegen.wholeStage": "true",
    }
    compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    counts = []
    with settings_for_now(spark, generated):
        for batches in (11, 11):  # the first ones also compile what all batches share
            write(clusters.east, topic_name, numbered(100 * batches, 1))
            counted = compiled.getCount()
            land_only(spark, topology)
            counts.append(compiled.getCount() - counted)
    assert place == "path" or counts[0] > 0, counts
    assert counts[1] < 10, counts


@pytest.mark.slow
def test_a_small_batch_of_a_catalog_is_two_jobs_of_spark_and_one_file(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """However many partitions it has records of. One job asks how far the query has committed."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    in_catalog(topology)
    create_topic(clusters.east, topic_name, 4)
    lake, connections = lake_of(spark, topology), Connections(load_topology(topology))
    plan = land.LandingPlan("east", {(topic_name, number): 0 for number in range(4)})
    client = connections.client("east", "consumer")
    landing = Landing(trigger_ms=0)
    at, batches = begin_query(lake, "east"), 6
    query = land.start_landing(lake, plan, landing, client, checkpoint=at, once=False)
    try:
        for batch in range(1, batches + 1):
            write(clusters.east, topic_name, numbered(40, 4, 40 * (batch - 1)))
            until(lambda n=40 * batch: sum(query.covered().values()) == n, "it is landed")
    finally:
        query.stop()
    files, landed = (
        len(lake.table("records").inputFiles()),
        lake.table("records").select("batch_id"),
    )
    assert batches <= files == landed.distinct().count()
    assert query.query is not None
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(str(query.query.runId))
    assert len(jobs) <= 2 * files + 2  # those of the first one open the table


@pytest.mark.slow
@pytest.mark.matrix(lake="catalog")
@pytest.mark.parametrize("how", ["landed", "read again"])
@pytest.mark.parametrize("column", ["topic", "generation"])
def test_a_null_where_a_column_has_none_is_refused_in_a_catalog(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    column: str,
) -> None:
    """Spark believes a schema that says so: it stages a value that was none, and Delta, whose table
    has the same schema, looks no more."""

    class OddPart(Part):
        def columns(self, key: TopicAndPartition) -> dict[str, object]:
            return {**super().columns(key), column: None}

    class OddJob(LandJob):
        def parts(self, *given: Any) -> list[Part]:
            return [OddPart(**vars(part)) for part in super().parts(*given)]

    made = land._job
    monkeypatch.setattr(land, "_job", lambda *given: OddJob(**vars(made(*given))))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    in_catalog(topology)
    create_topic(clusters.east, topic_name, 1)
    write(clusters.east, topic_name, numbered(10, 1))
    lake, connections = lake_of(spark, topology), Connections(load_topology(topology))
    plan = land.LandingPlan("east", {(topic_name, 0): 0})
    landing = connections.topology.clusters["east"].landing
    client = connections.client("east", "consumer")
    if how == "landed":
        at = begin_query(lake, "east")
        query = land.start_landing(lake, plan, landing, client, checkpoint=at, once=True)
        until(lambda: not query.active, "the end of the query")
        assert f"its {column} is null" in causes_of(query.exception())
        query.stop()
    else:
        with pytest.raises(Exception, match=f"its {column} is null"):
            ends = {(topic_name, 0): 10}
            land.land_again(lake, plan, landing, client, ends=ends, occasion="a test")
    assert lake.rows("SELECT count(*) AS n FROM records") == [{"n": 0}]


@pytest.mark.wide(
    "integration/test_nothing_ends_in_silence.py::test_a_worker_that_is_broken_when_the_run_is_stopped_is_what_the_run_ends_with"
)
def test_records_go_on_where_objectives_cannot_be_noted(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The objectives of a flow are noted beside its start; a run that could not note it replicates,
    and says so."""

    def refuse(*_: object, **__: object) -> None:
        raise LakeError("the table objectives takes no rows")

    monkeypatch.setattr("mirrorlake.run.noted_modes.note_objectives", refuse)
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(clusters.east, topic_name, 1)
    write(clusters.east, topic_name, numbered(10, 1))
    with pytest.raises(LakeError, match="takes no rows"):
        replicate_once(spark, topology)
    assert len(read_topic(clusters.west, f"east.{topic_name}")[0]) == 10


def source_read_by(reader: type[stream_source._Batches]) -> Any:
    """What takes the place of `source_of`: the same source, with another reader, a class within a
    function: Spark's Python processes do not have this module."""

    def source(*given: Any) -> Any:
        class Source(source_of(*given)):  # type: ignore[misc]
            def streamReader(self, schema: Any) -> stream_source._Batches:
                return reader(given[0])

        return Source

    return source


@pytest.mark.slow
def test_a_batch_of_which_spark_plans_no_part_is_not_taken_for_landed(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Spark 4.1 and 4.2 do with readers of another kind, and report the batch as done."""

    class NoParts(stream_source._Batches):
        def partitions(self, *_: Any) -> list[Any]:
            return []

    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    in_catalog(topology)
    create_topic(clusters.east, topic_name, 2)
    write(clusters.east, topic_name, numbered(100, 2))
    with monkeypatch.context() as patched:
        patched.setattr(stream_source, "source_of", source_read_by(NoParts))
        with pytest.raises(ReplicationError, match="have read 0 of 100 offsets"):
            replicate_once(spark, topology)
    replicate_once(spark, topology)
    names = {topic_name: f"east.{topic_name}"}
    assert_same(lake_of(spark, topology), clusters.east, clusters.west, names, 100)


@pytest.mark.slow  # the same by a fake: tests/unit/landing/test_unread.py
@pytest.mark.matrix(lake="catalog")
@pytest.mark.parametrize("dies", [False, True])
def test_a_part_that_spark_leaves_out_is_told_by_its_offsets_and_landed_again_once(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dies: bool,
) -> None:
    """Delta has committed what lies behind it when that is known; or the process dies before it
    is, and the next one compares."""

    class WithoutThePartInFront(stream_source._Batches):
        def partitions(self, *of: Any) -> Any:
            first, *others = super().partitions(*of)
            return others or [first]

    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    in_catalog(topology)
    create_topic(clusters.east, topic_name, 1)
    write(clusters.east, topic_name, numbered(50_000, 1))
    with monkeypatch.context() as patched:
        patched.setattr(stream_source, "source_of", source_read_by(WithoutThePartInFront))
        if dies:
            patched.setattr(UnreadOffsets, "make_up", lambda *_, **__: None)
        with pytest.raises(ReplicationError, match="have read 25,000 of 50,000 offsets, and not"):
            land_only(spark, topology)
    lake = lake_of(spark, topology)
    told = (
        "SELECT first_offset, last_offset FROM incidents "
        "WHERE kind = 'landing_gap' AND resolved_at IS NULL"
    )
    assert lake.rows(told) == ([] if dies else [{"first_offset": 0, "last_offset": 24_999}])
    if dies:  # who finds it says so at the end, too
        with pytest.raises(ReplicationError, match="Spark left out 25000 records"):
            land_only(spark, topology)
    land_only(spark, topology)
    lake = lake_of(spark, topology)
    assert lake.rows(told) == [{"first_offset": 0, "last_offset": 24_999}]
    counted = "SELECT count(*) AS n, count(DISTINCT offset) AS m FROM records"
    assert lake.rows(counted) == [{"n": 50_000, "m": 50_000}]


@pytest.mark.slow
@pytest.mark.matrix(lake="catalog")
def test_nothing_is_committed_of_what_is_landed_again_before_all_of_it_was_read(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who tries again by the same name lands it: Delta would skip what had committed a part."""

    def rows_of_the_second_part(job: LandJob, parts: Any, numbers: Any) -> Any:
        for batch in numbers:
            if batch.column(0).to_pylist() != [0]:
                yield from rows_of_parts(job, parts, [batch])

    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    in_catalog(topology)
    create_topic(clusters.east, topic_name, 1)
    write(clusters.east, topic_name, numbered(50_000, 1))
    lake, connections = lake_of(spark, topology), Connections(load_topology(topology))
    plan = land.LandingPlan("east", {(topic_name, 0): 0})
    landing = connections.topology.clusters["east"].landing
    client, ends = connections.client("east", "consumer"), {(topic_name, 0): 50_000}
    counted = "SELECT count(*) AS n, count(DISTINCT offset) AS m FROM records"
    with monkeypatch.context() as patched:
        patched.setattr(session_sink, "rows_of_parts", rows_of_the_second_part)
        with pytest.raises(ReplicationError, match="have read 25,000 of 50,000 offsets, and not"):
            land.land_again(lake, plan, landing, client, ends=ends, occasion="a test")
    assert lake.rows(counted) == [{"n": 0, "m": 0}]
    for _ in range(2):
        land.land_again(lake, plan, landing, client, ends=ends, occasion="a test")
        assert lake.rows(counted) == [{"n": 50_000, "m": 50_000}]


@pytest.mark.slow  # that their names differ: tests/unit/landing/test_session_sink.py
def test_two_lakes_of_one_session_land_each_its_own_cluster(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both call it `east`, and begin at the same moment, as in a notebook that runs two topology
    files."""
    both_registered, register = Barrier(2), DataSourceRegistration.register

    def register_both(self: DataSourceRegistration, source: Any) -> None:
        register(self, source)
        with suppress(BrokenBarrierError):  # who registers later waits for none
            both_registered.wait(20)

    monkeypatch.setattr(DataSourceRegistration, "register", register_both)
    files = {}
    for source, target in ((clusters.east, clusters.west), (clusters.west, clusters.east)):
        create_topic(source, topic_name)
        write(source, topic_name, numbered(30, start=30 * len(files)))
        flow, few = {"topics": [topic_name]}, {"small_batch_records": 1}
        files[source] = write_topology(tmp_path / str(len(files)), source, target, flow, few)
        in_catalog(files[source])
    with ThreadPoolExecutor(len(files)) as pool:
        runs = list(pool.map(partial(replicate_once, spark), files.values()))
    for source, run in zip(files, runs, strict=True):
        staged = now_of(run.lake).rows("SELECT value FROM records ORDER BY offset")
        there = [record.value for record in read_topic(source, topic_name)[0]]
        assert [bytes(row["value"]) for row in staged] == there


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_tables_and_target_are_enough_to_go_on",
    "integration/test_before_spark.py::test_a_java_that_is_missing_is_missed_at_the_start",
)
def test_few_records_up_to_an_end_need_no_session(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """A run with an end opens a session when it finds more than the driver lands by itself. Where
    there is no Java, it ends then, as wrong input does, and says so."""
    no_java = {"PATH": "/nowhere", "JAVA_HOME": "", "HOME": str(tmp_path)}
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(clusters.east, topic_name, 2)
    write(clusters.east, topic_name, numbered(1_000, 2))
    log = tmp_path / "run.log"
    assert finish(start_run(topology, "--once", **no_java)) == 0, log.read_text(encoding="utf-8")
    names = {topic_name: f"east.{topic_name}"}
    assert_same(lake_of(spark, topology), clusters.east, clusters.west, names, 1_000)
    write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [topic_name]}, {"small_batch_records": 0}
    )
    write(clusters.east, topic_name, numbered(10, 2, 1_000))
    assert finish(start_run(topology, "--once", **no_java)) == 2, log.read_text(encoding="utf-8")
    assert "Spark and Kafka need Java 17 or newer" in log.read_text(encoding="utf-8")
