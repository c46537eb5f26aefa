"""Progress is offsets: whatever dies, is rewritten or forgotten meanwhile, a flow goes on where map
and target say."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from mirrorlake.errors import (
    CountDiffers,
    PlanOutdated,
    PositionLost,
    ReplicationError,
    TargetRefused,
    TopicRefused,
)
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.offsets.generations import TargetGeneration
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.produce.batch import BatchPlan
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.produce.spec import FlowSpec
from mirrorlake.produce.task import ShardJob, produce_shard
from mirrorlake.produce.workers import SparkWorkers
from tests.support.clusters import ClusterPair
from tests.support.kafka import (
    NewRecord,
    create_topic,
    numbered,
    read_topic,
    send,
    transactional_producer,
    write,
)
from tests.support.lake_rows import FLOW, commit, now_of, opened, staged, write_file
from tests.support.replication import assert_same, make_replicator, replicate_once, write_topology

PARTITIONS = 2
SMALL_BATCHES = "mirrorlake.run.flow_spec.FlowSpec"


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_tables_and_target_are_enough_to_go_on",
    "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
)
@pytest.mark.law("progress is offsets")
def test_a_changed_selection_and_a_death_in_its_backlog_leave_nothing_behind(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A topic that was paused has a backlog of many batches; the process ends behind the first of
    them."""
    flows = {"topics": [f"{topic_name}-.*"]}
    paused = {**flows, "paused": [f"{topic_name}-b"]}
    topics = {f"{topic_name}-{name}": f"east.{topic_name}-{name}" for name in "ab"}
    landing = {"max_records_per_batch": 300}
    topology = write_topology(tmp_path, clusters.east, clusters.west, paused, landing)
    for topic in topics:
        create_topic(clusters.east, topic, PARTITIONS)
        write(clusters.east, topic, numbered(900, PARTITIONS))
    replicate_once(spark, topology)
    write_topology(tmp_path, clusters.east, clusters.west, flows, landing)
    monkeypatch.setattr(SMALL_BATCHES, partial(FlowSpec, max_records=300))
    dying, run = make_replicator(spark, topology, once=True)

    def die(_flow: str, report: BatchReport) -> None:
        dying.stop()  # no turn follows, as none does in a process that has died
        raise SystemError("the process ends here")

    dying._here._report = die
    with pytest.raises(ReplicationError, match="ends here"):
        dying.run()
    (mapped,) = now_of(run.lake).rows("SELECT sum(record_count) AS n FROM offset_map")
    assert 900 < mapped["n"] < 1_800
    run = replicate_once(spark, topology)
    assert_same(run.lake, clusters.east, clusters.west, topics, 1_800)


@dataclass
class Bench:
    """A stage that is written by hand, a flow over it, and a real target."""

    lake: Lake
    stage: StageFiles
    west: str
    topic: str
    spec: FlowSpec
    expected: dict[int, list[bytes]] = field(default_factory=dict)

    def land(self, offsets: dict[int, Sequence[int]]) -> None:
        """One file of the stage, with these offsets by partition, in this order."""
        rows = []
        for partition, numbers in offsets.items():
            named = [
                {**row, "value": b"%d" % row["offset"]} for row in staged(numbers, topic=self.topic)
            ]
            rows += [{**row, "partition": partition} for row in named]
            self.expected.setdefault(partition, []).extend(
                b"%d" % number for number in sorted(numbers)
            )
        commit(self.lake, "records", rows)

    def producer(self, **spec: object) -> FlowProducer:
        """A producer as a fresh process makes one."""
        return FlowProducer(
            self.stage,
            LakeMap(self.lake, FLOW),
            SparkWorkers(self.lake, "east"),
            replace(self.spec, **spec),
            lambda plans: None,
        )

    def run(self, **spec: object) -> list[BatchReport]:
        """All that there is to produce, by a fresh producer."""
        producer = self.producer(**spec)
        try:
            return list(iter(producer.step, None))
        finally:
            producer.close()

    def assert_exact(self) -> None:
        """Each record once, in order, and a row of the map for each."""
        found = read_topic(self.west, self.topic)
        assert {
            p: [record.value for record in records] for p, records in enumerate(found)
        } == self.expected
        wanted = {
            p: [(int(record.value), record.offset) for record in records]
            for p, records in enumerate(found)
        }
        assert {p: self._pairs(p) for p in wanted} == wanted

    def mapped(self, partition: int) -> list[int]:
        """The source offsets in the map, each as often as it is there."""
        return [source for source, _ in self._pairs(partition)]

    def _pairs(self, partition: int) -> list[tuple[int, int]]:
        """Source and target offset of each record in the map."""
        return sorted(
            (each["source_first"] + k * each["stride"], each["target_first"] + k)
            for row in now_of(self.lake).rows(
                f"SELECT * FROM offset_map WHERE topic = '{self.topic}' AND partition = {partition}"
            )
            for each in row["segments"]
            for k in range(each["record_count"])
        )


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return opened(spark, write_file(tmp_path_factory.mktemp("progress")))[0]


@pytest.fixture
def bench(lake: Lake, clusters: ClusterPair, topic_name: str) -> Bench:
    create_topic(clusters.west, topic_name, PARTITIONS)
    client = {"bootstrap.servers": clusters.west}
    name = f"{name_at_target(lake.lake_id, FLOW)}-{uuid.uuid4().hex[:6]}"
    spec = FlowSpec(
        FLOW,
        source_cluster="east",
        name_at_target=name,
        remote_topic=lambda topic: topic if topic == topic_name else None,
        client=client,
        producer=client,
        produce_tasks=2,
        transactional=True,
    )
    return Bench(lake, StageFiles(lake), clusters.west, topic_name, spec)


@pytest.mark.wide(
    "simulation/test_found.py::test_a_lake_that_is_older_than_the_target_gets_its_map_back"
)
def test_what_was_lost_is_recovered_at_once_over_an_optimized_stage(bench: Bench) -> None:
    """However small batches are: the number of records says where they are only if all are read."""
    bench.land({0: range(100), 1: range(100)})
    bench.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LakeMap, "append_map", lambda *_: None)
        for start in (100, 200, 300):
            bench.land({0: range(start, start + 100), 1: range(start, start + 60)})
            assert [report.record_count for report in bench.run()]
    bench.lake.sql("OPTIMIZE records")
    bench.land({0: range(400, 450)})
    counts = [report.record_count for report in bench.run(max_records=70)]
    assert sum(counts) == 300 + 180 + 50 and max(counts) >= 300
    bench.assert_exact()


@pytest.mark.wide("simulation/test_simulation.py::test_no_schedule_breaks_a_law")
def test_a_fallback_in_the_middle_of_a_batch_writes_nothing_twice(bench: Bench) -> None:
    """One shard has committed when the other finds offsets out of order at the end of its file."""
    bench.land({0: range(10), 1: range(10)})
    producer = bench.producer()
    try:
        first = producer.step()
        assert first is not None and first.reader == "files"
        bench.land({0: range(10, 20), 1: [*range(10, 60_000), 60_001, 60_000]})
        second = producer.step()
        assert second is not None and (second.reader, second.record_count) == (
            "rows",
            60_002 - 10 + 10,
        )
    finally:
        producer.close()
    bench.assert_exact()


@pytest.mark.wide(
    "simulation/test_found.py::test_a_reader_that_gives_less_of_a_range_with_gaps_that_a_batch_cuts_is_noticed"
)
@pytest.mark.parametrize(
    ("reader", "left"),
    [("files", 0), ("files", 40), ("rows", 40), pytest.param("rows", 0, marks=pytest.mark.slow)],
)
def test_a_reader_that_gives_less_than_was_planned_moves_no_position(
    bench: Bench, reader: str, left: int
) -> None:
    """A file of the stage gives fewer rows than it was landed with: none of a partition, or all but
    some."""
    bench.land({0: range(0, 200, 2), 1: range(10)})
    bench.run()
    before = set(_files(bench))
    bench.land({0: range(200, 400, 2), 1: range(10, 20)})
    (fresh,) = set(_files(bench)) - before
    with bench.stage.reading():
        pass
    whole = pq.read_table(fresh)
    rows = pc.field("partition") == 1
    pq.write_table(whole.filter(rows | (pc.field("offset") < 200 + 2 * left)), fresh)
    shards = {"reader": reader, "produce_tasks": 2}
    for _ in range(2):  # trying again does not get used to it
        with pytest.raises(
            CountDiffers, match="-0 was not read as it was planned, from offset 199 to 398"
        ) as raised:
            bench.run(**shards)
        assert raised.value.partition == 0 and (raised.value.first_offset or 0) >= 199
        # What another task has written is in the map, once. Of rows both shards may be one task's.
        assert bench.mapped(1) == list(range(20)) or reader == "rows"
    assert not any(
        int(record.value) > 200 + 2 * left for record in read_topic(bench.west, bench.topic)[0]
    )
    pq.write_table(whole, fresh)
    bench.run(**shards)
    bench.assert_exact()


@pytest.mark.wide(
    "simulation/test_found.py::test_a_reader_that_gives_less_of_a_range_with_gaps_that_a_batch_cuts_is_noticed"
)
@pytest.mark.parametrize("reader", ["files", "rows"])
def test_a_batch_that_cuts_a_range_with_gaps_knows_how_many_records_it_has(
    bench: Bench, reader: str
) -> None:
    """A file gives fewer rows than it was landed with, and not one fewer than its gaps allow."""
    bench.land({0: range(0, 400, 2), 1: range(3)})
    with bench.stage.reading():
        pass
    (fresh,) = _files(bench)
    whole = pq.read_table(fresh)
    pq.write_table(whole.filter(~pc.field("offset").isin([30, 32, 300])), fresh)
    with pytest.raises(CountDiffers, match="-0 was not read as it was planned"):
        bench.run(reader=reader, max_records=60)
    assert bench.mapped(0) == [] == read_topic(bench.west, bench.topic)[0]
    pq.write_table(whole, fresh)
    assert len(bench.run(reader=reader, max_records=60)) > 3
    bench.assert_exact()


def _files(bench: Bench) -> list[Path]:
    """The files of the stage that hold the topic."""
    records = bench.lake.directory / "records"  # type: ignore[operator]
    found = records.glob("*.parquet")
    return [
        path
        for path in found
        if bench.topic in pq.read_table(path, columns=["topic"])["topic"].to_pylist()
    ]


def test_a_task_of_another_number_of_shards_writes_no_more(bench: Bench) -> None:
    """One that outlived its driver has a partition that another transactional id has now."""
    bench.land({0: range(3), 1: range(3)})
    bench.run(produce_tasks=2)
    for shard in range(2):
        left = Producer(
            {**bench.spec.client, "transactional.id": f"{bench.spec.name_at_target}-{shard}"}
        )
        left.init_transactions(20)
        left.begin_transaction()
        left.produce(bench.topic, b"twice", partition=shard)
        left.flush(20)
        bench.land({0: [3 + shard], 1: [3 + shard]})
        bench.run(produce_tasks=1)
        with pytest.raises(KafkaException, match="FENCED|INVALID_PRODUCER_EPOCH|fenced"):
            left.commit_transaction(20)
        bench.run(produce_tasks=2)
    bench.assert_exact()


@pytest.mark.parametrize("forgotten", [False, True], ids=["known", "forgotten"])
def test_a_task_that_begins_after_it_was_fenced_writes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, forgotten: bool
) -> None:
    """Two tasks are planned, and start only when their partitions lie in one shard; also where the
    target has forgotten the tokens of before, as it does after a week."""
    jobs: list[ShardJob] = []
    keep = FlowProducer._jobs

    def jobs_of(producer: FlowProducer, plan: BatchPlan) -> list[ShardJob]:
        jobs[:] = keep(producer, plan)
        return list(jobs)

    monkeypatch.setattr(FlowProducer, "_jobs", jobs_of)
    bench.spec = replace(bench.spec, targets={bench.topic: TargetGeneration()})
    bench.land({0: range(3), 1: range(3)})
    bench.run(produce_tasks=1 if forgotten else 2)
    bench.land({0: [3], 1: [3]})
    bench.run(produce_tasks=2)
    late = list(jobs)
    assert len(late) == 2
    if forgotten:
        tokens = f"{bench.spec.name_at_target}-fencing"
        admin = AdminClient({"bootstrap.servers": bench.west})
        admin.delete_consumer_groups([tokens])[tokens].result(20)
    bench.run(produce_tasks=1)
    for job in late:
        with pytest.raises(PlanOutdated, match="before another process fenced it"):
            produce_shard(replace(job, owner=None), iter(()))
    bench.land({0: [4], 1: [4]})
    bench.run(produce_tasks=1)
    bench.assert_exact()


def test_ranges_without_a_record_are_skipped(bench: Bench) -> None:
    """What a compacted topic leaves: few records, far apart."""
    bench.land({0: [0, 1, 1_000_000], 1: [7, 8, 9]})
    assert len(bench.run(max_records=1)) < 12
    bench.assert_exact()
    assert bench.run() == []


@pytest.mark.wide("simulation/test_simulation.py::test_no_schedule_breaks_a_law")
def test_positions_that_the_target_forgot_stop_only_what_cannot_be_known(bench: Bench) -> None:
    """The group is deleted: first while all is in the map, then while rows are not."""
    told: list[TargetRefused] = []
    bench.land({0: range(10), 1: range(10)})
    bench.run()
    _forget_positions(bench)
    bench.land({0: range(10, 20), 1: range(10, 20)})
    bench.run(on_refused=told.extend)
    assert told == []
    bench.assert_exact()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LakeMap, "append_map", lambda *_: None)
        bench.land({0: range(20, 30)})
        bench.run()
    _forget_positions(bench)
    bench.land({1: range(20, 30)})
    bench.run(on_refused=told.extend)
    assert [(type(error), error.partition, error.first_offset) for error in told] == [
        (PositionLost, 0, 20)
    ]
    assert [len(records) for records in read_topic(bench.west, bench.topic)] == [30, 30]
    bench.run(on_refused=told.extend, known_foreign={PartitionGeneration(bench.topic, 0, 1): 20})
    assert len(told) == 2, "what was said of another generation"
    bench.run(on_refused=told.extend, known_foreign={PartitionGeneration(bench.topic, 0, 0): 20})
    assert len(told) == 2
    assert [len(records) for records in read_topic(bench.west, bench.topic)] == [40, 30]


def test_a_position_that_the_target_forgot_waits_for_transactions_of_others(bench: Bench) -> None:
    """The flow's own records lie behind one: no reader of committed records sees them yet."""
    told: list[TargetRefused] = []
    bench.land({0: range(10), 1: range(10)})
    bench.run()
    other = transactional_producer(bench.west, transaction_timeout_ms=600_000)
    other.begin_transaction()
    send(other, bench.topic, NewRecord(b"open"))
    other.flush(20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LakeMap, "append_map", lambda *_: None)
        bench.land({0: range(10, 20)})
        bench.run()
    _forget_positions(bench)
    bench.land({0: range(20, 30), 1: range(10, 20)})
    bench.run(on_refused=told.extend)
    other.abort_transaction(20)
    assert [(type(error), error.partition, error.first_offset) for error in told] == [
        (TopicRefused, 0, 10)
    ]
    bench.run(on_refused=told.extend)
    assert [type(error) for error in told[1:]] == [PositionLost]
    assert [len(records) for records in read_topic(bench.west, bench.topic)] == [20, 20]


def test_nothing_mapped_and_no_position_is_a_beginning_only_where_the_target_has_nothing_new(
    bench: Bench,
) -> None:
    told: list[TargetRefused] = []
    # somebody else's, before the flow began
    write(bench.west, bench.topic, numbered(5, PARTITIONS))
    targets = {bench.topic: TargetGeneration(0, 0, (3, 0))}
    bench.land({0: range(10), 1: range(10)})
    bench.run(on_refused=told.extend, targets=targets)
    assert [(type(error), error.partition) for error in told] == [(PositionLost, 1)]
    assert [len(records) for records in read_topic(bench.west, bench.topic)] == [13, 2]


def _forget_positions(bench: Bench) -> None:
    admin = AdminClient({"bootstrap.servers": bench.west})
    for future in admin.delete_consumer_groups([bench.spec.name_at_target]).values():
        future.result()
