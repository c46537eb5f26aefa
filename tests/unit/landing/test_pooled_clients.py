"""What a Python worker keeps between tasks has bounds: Spark uses it again for replays, and after
secrets rotated."""

import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mirrorlake.kafka import log
from mirrorlake.kafka.client_pool import IDLE_SECONDS, ClientPool
from mirrorlake.produce import task
from mirrorlake.produce.batch import ShardPlan
from mirrorlake.produce.spec import Target
from mirrorlake.produce.task import ShardJob
from mirrorlake.produce.writer import ShardWriter


class Clock:
    """Seconds, as a test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_used_stays_and_the_rest_goes_after_some_time() -> None:
    clock, closed = Clock(), list[str]()
    kept = ClientPool[str](closed.append, clock=clock)
    kept.put("a", "client a")
    kept.put("b", "client b")
    for _ in range(3):
        clock.now += IDLE_SECONDS * 0.6
        assert kept.get("a") == "client a"
    assert closed == ["client b"] and len(kept) == 1 and kept.get("b") is None
    kept.put("a", "client a, newer")
    assert closed == ["client b", "client a"]
    assert kept.take("a") == "client a, newer"
    clock.now += 2 * IDLE_SECONDS
    assert kept.take("a") is None and closed == ["client b", "client a"], "who took it closes it"


class Reader:
    """A reader of a source that counts those that are open."""

    open_ones: list["Reader"] = []

    def __init__(self, client: Any, small_answers: bool) -> None:
        self.client = client
        Reader.open_ones.append(self)

    def read(self, _ranges: object) -> Iterator[tuple[Any, Any]]:
        yield ("t", 0), self.client["sasl.password"]

    def close(self) -> None:
        Reader.open_ones.remove(self)


def test_a_secret_that_rotates_leaves_one_reader_of_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hourly tokens, for a day, of two sources."""
    monkeypatch.setattr(log, "open_log", Reader)
    for hour in range(24):
        for alias in ("east", "north"):
            client = {"bootstrap.servers": alias, "sasl.password": f"{alias} {hour}"}
            for _batch in range(3):
                found = list(log.read_ranges(alias, client, {("t", 0): (0, 1)}, False))
                assert found == [(("t", 0), client["sasl.password"])]
            assert len(Reader.open_ones) <= 2
    assert sorted(item.client["sasl.password"] for item in Reader.open_ones) == [
        "east 23",
        "north 23",
    ]


def test_producers_of_replays_end_and_one_of_a_flow_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each replay writes by transactional ids of its own, which never come again. Real producers,
    without a broker."""
    clock = Clock()
    monkeypatch.setattr(task, "_writers", ClientPool[ShardWriter](clock=clock))
    monkeypatch.setattr(task, "_paces", ClientPool[Any](idle_seconds=6 * IDLE_SECONDS, clock=clock))
    flow = _job("flow")
    begun, writers = task._writer(flow), list[weakref.ref[ShardWriter]]()
    for number in range(12):
        writers.append(weakref.ref(task._writer(_job(f"replay {number}"))))
        clock.now += IDLE_SECONDS / 2
        assert task._writer(flow) is begun
    gc.collect()
    assert sum(writer() is not None for writer in writers) <= 2
    assert len(task._writers) <= 3 and len(task._paces) <= 14
    clock.now += 7 * IDLE_SECONDS
    rotated = replace(
        flow, target=replace(flow.target, client={**flow.target.client, "client.id": "another"})
    )
    gone = weakref.ref(begun)
    assert task._writer(rotated) is not begun
    del begun
    gc.collect()
    assert gone() is None and len(task._writers) == len(task._paces) == 1


def _job(name: str) -> ShardJob:
    target = Target({"bootstrap.servers": "127.0.0.1:1"}, {}, "group", name, transactional=False)
    return ShardJob(ShardPlan(0, (), (), 0), target, task.WORKER)
