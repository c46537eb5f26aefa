"""Each point at which a test can kill a process is there, and a test that names another one hears
of it."""

import re

import pytest

from mirrorlake import failpoints
from tests.support.commands import ROOT

REACHED = re.compile(r"failpoints\.reached\(([^)]*)\)")


def test_the_points_that_are_listed_are_those_that_are_reached() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    names = {match[1] for text in texts for match in REACHED.finditer(text)}
    assert names == {f'"{point}"' for point in failpoints.ALL_POINTS}


def test_a_name_that_is_no_point_is_refused_at_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRRORLAKE_CRASH", "kafka-comitted:driver")
    with pytest.raises(ValueError, match="kafka-comitted, which is no point"):
        failpoints.reached("planned")
