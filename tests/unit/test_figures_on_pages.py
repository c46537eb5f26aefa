"""Figures that pages say in prose are those of the code."""

import re

from mirrorlake.lake.old_commits import KEPT, MOST_COMMITS
from mirrorlake.landing.land import SESSION_TRIGGER_SECONDS, TRIGGER_SECONDS
from tests.support.commands import ROOT


def page(name: str) -> str:
    """A page, with its lines joined."""
    return re.sub(r"\s+", " ", (ROOT / "docs" / name).read_text(encoding="utf-8"))


def test_how_often_a_batch_begins() -> None:
    every = f"a batch every {TRIGGER_SECONDS * 1_000:.0f} ms (`landing.trigger_ms`; in a catalog"
    assert f"{every} {SESSION_TRIGGER_SECONDS} s)" in page("capacity.md")
    assert f"a batch every {SESSION_TRIGGER_SECONDS} seconds" in page("databricks.md")


def test_for_how_long_a_stream_may_rest() -> None:
    text = page("downstream.md")
    hours = int(MOST_COMMITS * TRIGGER_SECONDS / 3_600)
    a_minute = int(MOST_COMMITS / (KEPT.total_seconds() / 60))
    assert (
        f"{KEPT.days} days, and of a busy table less: the newest {MOST_COMMITS:,} commits" in text
    )
    assert f"which may be {hours} hours" in text and f"they are {hours} hours" in text
    assert f"gets at most {a_minute} a minute" in text
    assert round(1 / TRIGGER_SECONDS) == 3 and "up to three a second" in text
