"""A process that stands by prepares its session until that worked once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.lake import warmup
from mirrorlake.run import preparing as module
from mirrorlake.run.preparing import preparing


class Lake:
    spark = "a session"


def ended(monkeypatch: pytest.MonkeyPatch, fails: int, stands_by: Callable[[], bool]) -> int:
    """How often it was tried, where the first times fail."""
    tried: list[Path] = []

    def rehearse(session: object, folder: Path) -> None:
        assert session == Lake.spark and folder.is_dir()
        tried.append(folder)
        if len(tried) <= fails:
            raise OSError("no room")

    monkeypatch.setattr(warmup, "rehearse", rehearse)
    monkeypatch.setattr(module, "PAUSES", (0.0,))
    lake: Any = Lake()
    worker = preparing(lake, stands_by)
    assert worker.state == "working"
    worker.start()
    assert worker.join(10) and worker.error is None and worker.state == "ended"
    return len(tried)


def test_once_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, 0, lambda: True) == 1


def test_again_where_it_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert ended(monkeypatch, 2, lambda: True) == 3
    assert "no room" in caplog.text and "until then a take-over takes longer" in caplog.text


def test_not_by_a_process_that_works_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, 0, lambda: False) == 0
    asked = iter([True, False])
    assert ended(monkeypatch, 9, lambda: next(asked)) == 1, "it took over meanwhile"
