"""Whether a flow is run is told by samples that go on coming, and by nobody's clock but to begin
with."""

from datetime import datetime, timedelta, timezone

import pytest

from mirrorlake.run.other_process import QUIET_SECONDS, RECENT, Presence

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
BEFORE = NOW - timedelta(seconds=5)


def test_a_sample_more_says_that_it_runs() -> None:
    presence = Presence("continuous", BEFORE, NOW, 100.0)
    assert presence.runs(BEFORE, 100.0) is None
    assert presence.runs(BEFORE, 100.0 + QUIET_SECONDS - 1) is None
    assert presence.runs(NOW, 100.0 + QUIET_SECONDS - 1) is True


def test_samples_that_cease_say_that_it_died() -> None:
    assert Presence("continuous", BEFORE, NOW, 100.0).runs(BEFORE, 100.0 + QUIET_SECONDS) is False


@pytest.mark.parametrize("mode", ["stopped", "once", None])
def test_nobody_waits_for_a_flow_that_ended_in_order(mode: str | None) -> None:
    assert Presence(mode, BEFORE, NOW, 100.0).runs(BEFORE, 100.0) is False


@pytest.mark.parametrize("newest", [None, NOW - timedelta(seconds=RECENT * QUIET_SECONDS)])
def test_nor_for_one_that_nobody_has_run_of_late(newest: datetime | None) -> None:
    assert Presence("continuous", newest, NOW, 100.0).runs(newest, 100.0) is False


def test_samples_that_come_seldom_are_waited_for() -> None:
    long_ago = NOW - timedelta(seconds=1700)
    presence = Presence("continuous", long_ago, NOW, 100.0, interval=200.0)
    assert presence.runs(long_ago, 699.0) is None
    assert presence.runs(long_ago, 700.0) is False


def test_a_clock_that_is_ahead_is_no_reason_to_be_overlooked() -> None:
    ahead = NOW + timedelta(seconds=60)
    assert Presence("continuous", ahead, NOW, 100.0).runs(ahead, 100.0) is None
