"""What `mirrorlake verify` says while it compares."""

from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.cli import verify
from mirrorlake.cli.main import main
from tests.support.lake_rows import write_file


@pytest.mark.parametrize(
    ("seconds", "watch", "said"),
    [(2, False, []), (11, False, ["so far: 5 of 5"]), (2, True, ["so far: 5 of 5"])],
)
def test_a_quick_one_says_its_result_once(seconds: float, watch: bool, said: list[str]) -> None:
    began = datetime(2026, 11, 21)
    found: Any = SimpleNamespace(
        began=began,
        ended=began + timedelta(seconds=seconds),
        proven=5,
        records=5,
        ranges=1,
        proven_before=0,
        differences=[],
        not_compared=[],
    )
    lines: list[str] = []
    shared: Any = SimpleNamespace(say=lines.append)
    verify._progress(shared, found, watch)
    assert [line[:14] for line in lines] == said


def test_a_report_without_a_folder_is_refused_before_anything_is_compared(tmp_path: Path) -> None:
    file = write_file(tmp_path)
    report = tmp_path / "nowhere" / "evidence.html"
    with pytest.raises(SystemExit, match=f"there is no directory {report.parent} to write ev"):
        main(["-c", str(file), "verify", "--report", str(report)])
