"""The thread that records a run: it loses what a store does not take, tells so once, and holds up
no other."""

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.samples import FlowLag
from mirrorlake.tracking import recorder as recorder_module
from mirrorlake.tracking.meter import Meter
from mirrorlake.tracking.recorder import Begin, Recorder

BEGIN = Begin(
    "run", {"mirrorlake.command": "run"}, {"cores": "2"}, {"topology.redacted.yml": "flows: {}"}
)


@dataclass
class FakeStore:
    """Keeps what it is told; `fails` raises at each call, `gate` holds every call until it is
    set."""

    fails: bool = False
    gate: threading.Event | None = None
    calls: list[tuple[object, ...]] = field(default_factory=list)

    def _called(self, *call: object) -> None:
        if self.gate is not None:
            self.gate.wait(60)
        if self.fails:
            raise ConnectionError("http://me:hunter@host")
        self.calls.append(call)

    def begin(self, name: str, tags: Mapping[str, str], started_ms: int) -> str:
        self._called("begin", name)
        return "1"

    def params(self, run: str, values: Mapping[str, str]) -> None:
        self._called("params", dict(values))

    def metrics(self, run: str, values: Mapping[str, float], at_ms: int, step: int) -> None:
        self._called("metrics", dict(values))

    def text(self, run: str, name: str, content: str) -> None:
        self._called("text", name)

    def end(self, run: str, status: str) -> None:
        self._called("end", status)


def test_everything_arrives_in_order() -> None:
    store = FakeStore()
    recorder = Recorder(lambda: store, BEGIN, "here", lambda: {"records": 7})
    recorder.metrics({"lag": 1})
    recorder.text("report.json", "{}")
    assert recorder.close("FINISHED", 10)
    assert store.calls == [
        ("begin", "run"),
        ("params", {"cores": "2"}),
        ("text", "topology.redacted.yml"),
        ("metrics", {"lag": 1}),
        ("text", "report.json"),
        ("metrics", {"records": 7}),
        ("end", "FINISHED"),
    ]


def test_figures_are_asked_for_again_and_again() -> None:
    store, enough, asked = FakeStore(), threading.Event(), 0

    def figures() -> dict[str, float]:
        nonlocal asked
        asked += 1
        if asked == 3:
            enough.set()
        return {"n": asked}

    recorder = Recorder(lambda: store, BEGIN, "here", figures, tick_seconds=0.02)
    assert enough.wait(30)
    recorder.close("FINISHED", 10)
    assert [call[1] for call in store.calls if call[0] == "metrics"][:3] == [
        {"n": 1},
        {"n": 2},
        {"n": 3},
    ]


def test_a_store_that_fails_is_told_of_once_and_without_its_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = Recorder(lambda: FakeStore(fails=True), BEGIN, "https://host")
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            recorder.metrics({"lag": 1})
        assert not recorder.close("FINISHED", 10)
    assert len(caplog.records) == 1
    assert "MLflow at https://host: ConnectionError" in caplog.text and "hunter" not in caplog.text


def test_a_store_that_comes_back_gets_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "PAUSE_SECONDS", 0.0)
    store = FakeStore(fails=True)
    tried = threading.Event()

    def made() -> FakeStore:
        tried.set()
        return store

    recorder = Recorder(made, BEGIN, "here")
    recorder.metrics({"lag": 1})
    assert tried.wait(10)
    deadline = time.monotonic() + 10
    while recorder._queue.qsize() or not recorder._reported:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    store.fails = False
    recorder.metrics({"lag": 2})
    assert recorder.close("FINISHED", 10)
    assert store.calls[0] == ("begin", "run") and ("metrics", {"lag": 2}) in store.calls


def test_a_store_that_hangs_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()
    store = FakeStore(gate=gate)
    recorder = Recorder(lambda: store, BEGIN, "here")
    before = time.monotonic()
    with caplog.at_level(logging.WARNING):
        for number in range(recorder_module.WAITING + 100):
            recorder.metrics({"lag": number})
        assert not recorder.close("FINISHED", 0.2)
    assert time.monotonic() - before < 5
    assert len(caplog.records) == 1
    gate.set()


def test_a_closing_that_is_late_is_left() -> None:
    gate = threading.Event()
    recorder = Recorder(lambda: FakeStore(gate=gate), BEGIN, "here")
    before = time.monotonic()
    assert not recorder.close("FINISHED", 0.2)
    assert 0.2 <= time.monotonic() - before < 5
    gate.set()
    assert recorder._thread.join(10), "it ends by itself"


def test_a_meter_adds_up_and_begins_anew() -> None:
    meter = Meter()
    meter.batch(
        "east->west",
        BatchReport(
            1,
            stage_version=1,
            record_count=100,
            reader="files",
            complete=True,
            replication_ms=(5, 7, 9),
        ),
    )
    meter.batch(
        "east->west",
        BatchReport(
            2,
            stage_version=2,
            record_count=200,
            reader="files",
            complete=True,
            replication_ms=(4, 8, 8),
        ),
    )
    meter.batch("east->north", BatchReport(2, 2, 30, "files", True))
    meter.sampled("east->west", FlowLag(12, 1.5))
    assert meter.take(10) == {
        "east-to-west/records_per_second": 30,
        "east-to-west/batches": 2,
        "east-to-west/latency_p50_ms": 5,
        "east-to-west/latency_p95_ms": 8,
        "east-to-west/latency_p99_ms": 9,
        "east-to-west/lag_records": 12,
        "east-to-west/lag_seconds": 1.5,
        "east-to-north/records_per_second": 3,
        "east-to-north/batches": 1,
        "records_per_second": 33,
    }
    again = meter.take(10)
    assert again["records_per_second"] == 0 and again["east-to-west/lag_records"] == 12
    assert "east-to-west/latency_p99_ms" not in again, "nothing was produced"
    assert meter.records == 330
