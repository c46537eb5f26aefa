"""What planning a batch costs follows what came, and what it costs to look at all of it does not
grow faster than it."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import NOTHING_MAPPED, Floor
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.batch import BatchPlan, plan_batch
from mirrorlake.produce.flow_state import Upcoming
from mirrorlake.produce.holes import lacking
from mirrorlake.produce.map_writer import MapWriter
from mirrorlake.produce.parking import RefusedRecord
from mirrorlake.produce.refused_records import RefusedRecords
from mirrorlake.produce.spec import FlowSpec
from tests.support.growth import LINEAR, SAME, Made, growth, steps

Floors = dict[TopicAndPartition, Floor]


def land(index: StageIndex, offsets: dict[TopicAndPartition, int], count: int = 10) -> None:
    """One file with so many records of some partitions, from these offsets on."""
    ranges = [
        StagedRange("east", *key, 0, first, first + count - 1, count)
        for key, first in offsets.items()
    ]
    index.apply([(f"f{index.version}", ranges)], (), index.version + 1)


def keys(size: int) -> list[TopicAndPartition]:
    return [(f"t{n % 7}", n) for n in range(size)]


def staged(size: int) -> StageIndex:
    index = StageIndex()
    land(index, dict.fromkeys(keys(size), 0))
    return index


def planned(index: StageIndex, floors: Floors, **options: Any) -> BatchPlan:
    settings = {"produce_tasks": 4, "max_records": 10**9, **options}
    return plan_batch(index, "east", floors, str.upper, **settings)


def advanced(floors: Floors, plan: BatchPlan) -> None:
    for one in plan.partitions:
        floors[one.key] = replace(NOTHING_MAPPED, reached=one.last + 1)


class Flow:
    """A flow that plans by difference, as `FlowProducer.step` does."""

    def __init__(self, index: StageIndex) -> None:
        self.index, self.floors, self._upcoming = (
            index,
            dict[TopicAndPartition, Floor](),
            Upcoming(),
        )

    def step(self, **options: Any) -> BatchPlan:
        among = self._upcoming.among(self.index, "east")
        plan = planned(self.index, self.floors, among=among, **options)
        self._upcoming.left(plan.upcoming)
        return plan

    def produce(self) -> None:
        advanced(self.floors, self.step())


def one_landed(size: int) -> Callable[[], object]:
    """Of many partitions that are all produced one gets a batch more."""
    flow = Flow(staged(size))
    flow.produce()
    flow.step()
    land(flow.index, {keys(size)[3]: 10})
    return flow.produce


def test_a_batch_of_one_partition_costs_the_same_beside_however_many() -> None:
    assert growth(one_landed) < SAME


def all_refused(size: int, is_parked: bool) -> Callable[[], object]:
    store: Any = SimpleNamespace(parked=lambda: [], park=lambda _: None)
    codecs: Any = SimpleNamespace(final=lambda rows: rows, codec_of=lambda _: "none")
    spec = FlowSpec(
        name="f",
        source_cluster="a",
        name_at_target="f",
        remote_topic=str,
        client={},
        producer={},
        produce_tasks=1,
        transactional=True,
        parks=is_parked,
        on_refused=lambda _: None,
    )
    record = vars(RefusedRecord(3, "INVALID_RECORD", 7))
    row = {
        "generation": 0,
        "target_topic": "T",
        "target_generation": 0,
        "shard": 0,
        "refused_first": 3,
        "refused_last": 3,
        "refused_target": None,
        "refused_kind": "target_refused",
        "refused_reason": "no",
        "refused_records": [record] if is_parked else None,
    }
    rows = [{"topic": topic, "partition": number, **row} for topic, number in keys(size)]
    records = RefusedRecords(store, codecs)
    return lambda: records.take(pa.Table.from_pylist(rows), spec)


def lacked(size: int) -> Callable[[], object]:
    removals: Any = [
        SimpleNamespace(
            topic=topic,
            place=PartitionGeneration(topic, number, 0),
            generation=0,
            below=30,
            first_offset=0,
        )
        for topic, number in keys(size)
    ]
    return lambda: lacking(removals, {}, str.upper, {})


ALL: dict[str, Made] = {
    "all are new": lambda size: partial(planned, staged(size), {}),
    "all came at once": lambda size: Flow(staged(size)).produce,
    "the batch has room for few": lambda size: partial(planned, staged(size), {}, max_records=50),
    "all are stopped": lambda size: partial(
        planned, staged(size), {}, stopped=[PartitionGeneration(*key, 0) for key in keys(size)]
    ),
    "all are refused": lambda size: all_refused(size, is_parked=False),
    "all are parked": lambda size: all_refused(size, is_parked=True),
    "all lack something": lacked,
}


@pytest.mark.parametrize("case", ALL)
def test_a_plan_of_all_grows_as_they_do(case: str) -> None:
    assert growth(ALL[case]) < LINEAR


def test_rows_of_the_map_are_forgotten_once_they_are_there() -> None:
    """The next append looks at what is on its way, and at nothing else."""

    def written(others: int) -> int:
        store: Any = SimpleNamespace(
            append_map=lambda *_: None, append_latency=lambda *_: None, rows_wait_seconds=0.0
        )
        writer = MapWriter(store, "f")
        at = [("t", number) for number in range(others)]
        for key in at:
            writer._unmapped[key].append((1, SimpleNamespace()))  # type: ignore[arg-type]
        entry: Any = SimpleNamespace(
            batch_id=2, map_rows=pa.table({"a": [1]}), latency_rows=pa.table({"a": [1]})
        )
        counts = []
        for _ in range(2):
            writer._queue.append(entry)
            counts.append(steps(writer._append_all))
        writer.close()
        return counts[1]

    assert written(400) < SAME * written(100)


KEYS = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2))
LANDED = st.dictionaries(KEYS, st.integers(1, 30), max_size=4)


@given(st.lists(st.tuples(LANDED, st.integers(1, 40), st.booleans()), max_size=12))
def test_a_plan_by_difference_is_the_plan_of_all(
    turns: list[tuple[dict[TopicAndPartition, int], int, bool]],
) -> None:
    """Whatever came, in whatever pieces it is produced, and when the index was built anew."""
    flow, ends = Flow(StageIndex()), dict[TopicAndPartition, int]()
    for batch, most, is_built_anew in turns:
        if is_built_anew:
            fresh, files = StageIndex(), defaultdict[str, list[StagedRange]](list)
            for path, one in flow.index.rows():
                files[path].append(one)
            by_number = flow.index.numbers().__getitem__
            fresh.apply([(path, files[path]) for path in sorted(files, key=by_number)], (), 0)
            fresh.version = flow.index.version
            flow.index = fresh
        ranges = []
        for key, count in batch.items():
            first = ends.get(key, 0)
            ends[key] = first + count
            ranges.append(StagedRange("east", *key, 0, first, ends[key] - 1, count))
        flow.index.apply([(f"f{flow.index.version}", ranges)], (), flow.index.version + 1)
        in_full = planned(flow.index, flow.floors, max_records=most)
        plan = flow.step(max_records=most)
        assert sorted(plan.upcoming) == sorted(in_full.upcoming)
        assert {one.key for one in plan.partitions} <= set(plan.upcoming)
        advanced(flow.floors, plan)
    while (plan := flow.step(max_records=20)).shards:
        advanced(flow.floors, plan)
    assert {key: floor.next for key, floor in flow.floors.items()} == ends
