"""What `mirrorlake verify` says while it compares."""

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.cli import verify


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
