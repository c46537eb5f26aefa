"""How a run is going, as it is told to who watches it."""

import logging

import pytest

from mirrorlake.library.answers import Produced
from mirrorlake.library.progress import Progress
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.samples import FlowLag


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def batch(records: int, latency: tuple[int, int, int] | None = None) -> BatchReport:
    return BatchReport(
        1,
        stage_version=1,
        record_count=records,
        reader="files",
        complete=True,
        replication_ms=latency,
    )


def test_a_phase_is_told_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock()
    progress = Progress(clock)
    with progress.phase("starting Spark", since=98.0):
        clock.now += 3
        assert progress.current_phase() == ("starting Spark", 5.0)
    assert progress.current_phase() is None
    with pytest.raises(KeyError), progress.phase("opening the lake"):
        raise KeyError
    assert [record.getMessage() for record in caplog.records] == ["starting Spark: 5.0 s"]
    assert caplog.records[0].facts == {"phase": "starting Spark", "seconds": 5.0}  # type: ignore[attr-defined]


def test_figures_of_a_flow(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock()
    progress = Progress(clock)
    progress.expect(["a->b"])
    (idle,) = progress.now()
    assert (idle.records, idle.lag_records, idle.latency_ms, idle.open_incidents) == (
        0,
        None,
        None,
        0,
    )
    clock.now += 20
    progress.batch("a->b", batch(0))
    progress.batch("a->b", batch(500, (1, 2, 3)))
    clock.now += 5
    progress.batch("a->b", batch(300, None))
    progress.sampled("a->b", FlowLag(7, 1.5))
    progress.incidents = lambda: {"a->b": 1}
    (found,) = progress.now()
    assert (found.records, found.batches, found.records_per_second) == (800, 3, 80.0)
    assert progress.produced() == {"a->b": Produced("a->b", 800, 3, 0, "files")}
    assert (found.lag_records, found.lag_seconds, found.latency_ms, found.open_incidents) == (
        7,
        1.5,
        (1, 3),
        1,
    )
    clock.now += 9
    assert progress.now()[0].records_per_second == 30.0
    clock.now += 9
    assert progress.now()[0].records_per_second == 0.0
    assert [record.getMessage() for record in caplog.records] == [
        "flow a->b: first records at the target after 20.0 s"
    ]
