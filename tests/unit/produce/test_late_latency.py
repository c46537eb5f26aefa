"""Rows of `latency` that wait for later ones, where commits are dear; those of the map never do."""

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from mirrorlake.produce import map_writer
from mirrorlake.produce.map_writer import MapWriter
from mirrorlake.produce.report import RESULT
from tests.support.waiting import until


class Store:
    """Notes what is appended: (table, batches, number)."""

    def __init__(self, latency_seconds: float) -> None:
        self.latency_seconds = latency_seconds
        self.calls: list[tuple[str, list[int], int]] = []
        self.failure: Exception | None = None

    def append_map(self, rows: pa.Table, batch_id: int) -> None:
        self.calls.append(("map", rows["batch_id"].to_pylist(), batch_id))

    def append_latency(self, rows: pa.Table, batch_id: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.calls.append(("latency", rows["batch_id"].to_pylist(), batch_id))

    def of(self, table: str) -> list[tuple[list[int], int]]:
        return [(batches, number) for name, batches, number in self.calls if name == table]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [1_000.0]
    monkeypatch.setattr(map_writer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    yield now


def result_of(offset: int) -> pa.Table:
    run = dict.fromkeys(("source_first", "source_last", "target_first", "target_last"), offset)
    row = dict.fromkeys(RESULT.names) | {
        "topic": "t", "partition": 0, "record_count": 1, "byte_count": 1,
        "runs": [{**run, "record_count": 1, "segments": []}],
    }  # fmt: skip
    return pa.Table.from_pylist([row], RESULT)


def writer_to(store: Store) -> tuple[MapWriter, Callable[[int], None]]:
    writer = MapWriter(store, "a->b")

    def add(batch: int) -> None:
        writer.add(result_of(batch), batch, 1, "short")
        writer.drain()

    return writer, add


def test_each_batch_is_in_the_map_at_once_and_several_are_one_commit_of_latency(
    clock: list[float],
) -> None:
    store = Store(5.0)
    writer, add = writer_to(store)
    for batch in (1, 2, 3):
        add(batch)
        clock[0] += 2
    assert store.of("map") == [([1], 1), ([2], 2), ([3], 3)]
    assert store.of("latency") == [([1], 1)]
    add(4)
    assert store.of("latency") == [([1], 1), ([2, 3, 4], 4)]
    add(5)
    writer.close()
    assert store.of("latency")[2:] == [([5], 5)], "what waits is there in the end"


def test_where_commits_are_cheap_none_waits(clock: list[float]) -> None:
    store = Store(0.0)
    writer, add = writer_to(store)
    for batch in (1, 2):
        add(batch)
    assert store.of("latency") == [([1], 1), ([2], 2)]
    writer.close()
    assert len(store.of("latency")) == 2


def test_what_waits_is_appended_though_no_batch_comes(clock: list[float]) -> None:
    store = Store(5.0)
    writer, add = writer_to(store)
    add(1)
    add(2)
    writer.check()
    writer.drain()
    assert len(store.of("latency")) == 1
    clock[0] += 5
    writer.check()
    until(lambda: store.of("latency")[1:] == [([2], 2)], "what waited is there", 10.0)
    writer.drain()
    clock[0] += 5
    writer.check()
    writer.close()
    assert len(store.of("latency")) == 2 == len(store.of("map"))


def test_what_could_not_be_appended_late_ends_the_writer(clock: list[float]) -> None:
    """As it does with what is appended at once."""
    store = Store(5.0)
    writer, add = writer_to(store)
    add(1)
    add(2)
    store.failure = OSError("no room")
    clock[0] += 5
    writer.check()
    raised = threading.Event()

    def checked() -> bool:
        try:
            writer.check()
        except OSError:
            raised.set()
        return raised.is_set()

    until(checked, "the failure is raised", 10.0)
    with pytest.raises(OSError, match="no room"):
        writer.close()


def test_a_result_without_records_has_no_latency(clock: list[float]) -> None:
    store: Any = Store(5.0)
    writer, add = writer_to(store)
    add(1)
    writer.add(result_of(2).slice(0, 0), 2, 1, "short")
    writer.close()
    assert [batches for batches, _ in store.of("map")] == [[1], []]
