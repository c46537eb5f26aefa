"""Rows of finished batches that wait for later ones, where commits are dear."""

import threading
from collections.abc import Iterator
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

    def __init__(self, rows_wait_seconds: float) -> None:
        self.rows_wait_seconds = rows_wait_seconds
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


def unmapped(writer: MapWriter) -> int:
    """How many records the target is told of, since the map has them not."""
    return sum(each.record_count for each in writer.unmapped(("t", 0)))


def test_of_several_batches_within_a_time_one_commit_is_made(clock: list[float]) -> None:
    """A minute with two batches a second makes twelve commits to each table."""
    store = Store(5.0)
    writer = MapWriter(store, "a->b")  # type: ignore[arg-type]
    for batch in range(1, 121):
        writer.add(result_of(batch), batch, 1, "short")
        writer.check()
        idle(writer)
        assert unmapped(writer) <= 10, "what waits is what the target has in its metadata"
        clock[0] += 0.5
    for table in ("map", "latency"):
        commits = store.of(table)
        assert len(commits) == 12
        assert [batch for batches, _ in commits for batch in batches] == list(range(1, 112))
        assert [number for _, number in commits] == [batches[-1] for batches, _ in commits]
    writer.close()
    assert store.of("map")[-1] == (list(range(112, 121)), 120), "what waits is there in the end"
    assert not unmapped(writer)


def test_the_first_rows_behind_a_pause_come_at_once(clock: list[float]) -> None:
    store = Store(5.0)
    writer = MapWriter(store, "a->b")  # type: ignore[arg-type]
    for batch in (1, 2, 3):
        writer.add(result_of(batch), batch, 1, "short")
        idle(writer)
        assert store.of("map")[-1] == store.of("latency")[-1] == ([batch], batch)
        clock[0] += 5
    writer.close()


def test_where_commits_are_cheap_none_waits(clock: list[float]) -> None:
    store = Store(0.0)
    writer = MapWriter(store, "a->b")  # type: ignore[arg-type]
    for batch in (1, 2):
        writer.add(result_of(batch), batch, 1, "short")
        idle(writer)
    assert store.of("map") == store.of("latency") == [([1], 1), ([2], 2)]
    writer.close()
    assert len(store.of("map")) == 2


def test_what_waits_is_appended_though_no_batch_comes(clock: list[float]) -> None:
    store = Store(5.0)
    writer = waiting_in(store)
    writer.check()
    idle(writer)
    assert store.of("map") == [([1], 1)] and unmapped(writer) == 1
    clock[0] += 5
    writer.check()
    until(lambda: store.of("latency")[1:] == [([2], 2)], "what waited is there", 10.0)
    idle(writer)
    writer.close()
    assert len(store.of("latency")) == 2 == len(store.of("map"))


def test_a_flow_that_needs_its_rows_in_the_map_does_not_wait(clock: list[float]) -> None:
    """Before a new generation, and where the target's metadata is full."""
    store = Store(5.0)
    writer = waiting_in(store)
    writer.drain()
    assert store.of("map")[1:] == store.of("latency")[1:] == [([2], 2)] and not unmapped(writer)
    writer.close()


def test_what_came_beside_an_append_is_drained_behind_it(clock: list[float]) -> None:
    store, begun, goes_on = Store(5.0), threading.Event(), threading.Event()
    append = store.append_map

    def slow(rows: pa.Table, batch_id: int) -> None:
        begun.set()
        assert goes_on.wait(10)
        append(rows, batch_id)

    store.append_map = slow  # type: ignore[method-assign]
    writer = MapWriter(store, "a->b")  # type: ignore[arg-type]
    writer.add(result_of(1), 1, 1, "short")
    assert begun.wait(10)
    writer.add(result_of(2), 2, 1, "short")
    threading.Timer(0.05, goes_on.set).start()
    writer.drain()
    assert store.of("map") == [([1], 1), ([2], 2)] and not unmapped(writer)
    tables = [table for table, _, _ in store.calls]
    assert tables == ["map", "latency"] * 2, "no two commits at once, the map's first"
    writer.close()


def test_what_could_not_be_appended_ends_the_writer(clock: list[float]) -> None:
    store = Store(5.0)
    writer = waiting_in(store)
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
        writer.add(result_of(3), 3, 1, "short")
    with pytest.raises(OSError, match="no room"):
        writer.close()
    assert len(store.of("map")) == 2, "and nothing is appended behind it"


def test_a_result_without_records_has_no_latency(clock: list[float]) -> None:
    store: Any = Store(5.0)
    writer = waiting_in(store)
    writer.add(result_of(3).slice(0, 0), 3, 1, "short")
    writer.close()
    assert [batches for batches, _ in store.of("map")] == [[1], [2]]


def waiting_in(store: Store) -> MapWriter:
    """One of which the rows of batch 1 are in the tables, and those of batch 2 wait."""
    writer = MapWriter(store, "a->b")  # type: ignore[arg-type]
    writer.add(result_of(1), 1, 1, "short")
    idle(writer)
    writer.add(result_of(2), 2, 1, "short")
    assert store.of("map") == [([1], 1)]
    return writer


def idle(writer: MapWriter) -> None:
    """Wait until it appends nothing."""
    until(lambda: not writer._active, "the append has ended", 10.0)
