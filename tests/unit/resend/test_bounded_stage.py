"""A stage within bounds: what lies in some ranges is all that a producer plans from."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.batch import plan_batch
from mirrorlake.resend.sender import BoundedStage


class Memory:
    """A stage that is an index."""

    storage = None
    is_its_files = True

    def __init__(self) -> None:
        self.index = StageIndex()
        self.forgotten = 0

    @contextmanager
    def reading(self) -> Iterator[StageIndex]:
        yield self.index

    def forget(self) -> None:
        self.forgotten += 1


def staged(topic: str, partition: int, generation: int, first: int, last: int) -> StagedRange:
    return StagedRange("east", topic, partition, generation, first, last, last - first + 1)


def planned(stage: BoundedStage) -> dict[tuple[str, int], tuple[int, int, int]]:
    with stage.reading() as index:
        plan = plan_batch(index, "east", {}, str.upper, produce_tasks=2, max_records=1_000)
    return {
        (item.topic, item.partition): (item.generation, item.first, item.last)
        for item in plan.partitions
    }


def test_only_what_is_within_is_there() -> None:
    memory = Memory()
    files = [
        ("a", [staged("t", 0, 0, 0, 9), staged("t", 1, 0, 0, 9), staged("u", 0, 0, 0, 9)]),
        ("b", [staged("t", 0, 0, 10, 19), staged("t", 0, 1, 0, 9)]),
    ]
    memory.index.apply(files, (), 1)
    stage = BoundedStage(
        memory, [staged("t", 0, 0, 5, 12), staged("t", 1, 0, 50, 60), staged("v", 0, 0, 0, 9)]
    )
    with stage.reading() as index:
        (ranges,) = index.topics("east")["t"].values()
        assert [(ranges[at].first, ranges[at].last, ranges[at].record_count) for at in (0, 1)] == [
            (5, 9, 5),
            (10, 12, 3),
        ]
        assert (
            len(ranges) == 2
            and set(index.topics("east")) == {"t"}
            and index.path(ranges[1].file) == "b"
        )
    assert planned(stage) == {("t", 0): (0, 0, 12)}


def test_it_follows_files_and_takes_nothing_new() -> None:
    memory = Memory()
    memory.index.apply([("a", [staged("t", 0, 0, 0, 9)])], (), 1)
    stage = BoundedStage(memory, [staged("t", 0, 0, 0, 9)])
    before = planned(stage)
    memory.index.apply([("b", [staged("t", 0, 0, 0, 19)])], ["a"], 2)
    assert planned(stage) == before
    with stage.reading() as index:
        assert index.version == 2 and index.path(index.topics("east")["t"][0][0].file) == "b"
    stage.forget()
    assert memory.forgotten == 1 and planned(stage) == before


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(0, 30), st.integers(0, 30))
def test_offsets_are_those_within(widths: list[int], one: int, other: int) -> None:
    memory, first, last = Memory(), min(one, other), max(one, other)
    at, files = 0, []
    for number, width in enumerate(widths):
        files.append((str(number), [staged("t", 0, 0, at, at + width - 1)]))
        at += width
    memory.index.apply(files, (), 1)
    with BoundedStage(memory, [staged("t", 0, 0, first, last)]).reading() as index:
        ranges = index.topics("east").get("t", {}).get(0, [])
        found = [
            offset
            for n in range(len(ranges))
            for offset in range(ranges[n].first, ranges[n].last + 1)
        ]
    assert found == [offset for offset in range(at) if first <= offset <= last]


def test_its_files_are_opened_as_they_are_to_be_now() -> None:
    """Credentials that are lent are good for an hour, and a restore may take longer."""
    memory: Any = Memory()
    stage = BoundedStage(memory, [])
    memory.storage = {"token": "another"}
    assert stage.storage == {"token": "another"}
