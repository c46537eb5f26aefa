"""Times that options are given."""

from datetime import datetime, timedelta, timezone

import pytest

from mirrorlake.cli.context import past_time_of, time_of
from mirrorlake.errors import InputError


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-11-21T03:12:00", 3),
        ("2026-11-21T03:12:00Z", 3),
        ("2026-11-21T03:12:00+01:00", 2),
        ("2026-11-21", 0),
    ],
)
def test_a_time_without_a_zone_is_in_utc(text: str, hour: int) -> None:
    found = time_of("--as-of", text).astimezone(timezone.utc)
    assert (found.date().isoformat(), found.hour) == ("2026-11-21", hour)


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "03:12", ""])
def test_what_is_no_time_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match="write a time as 2026-11-21"):
        past_time_of("--since", text)


def test_a_time_to_come_is_refused_and_one_of_another_clock_is_not() -> None:
    now = datetime.now(timezone.utc)
    assert past_time_of("--as-of", (now + timedelta(minutes=1)).isoformat())
    for text in ((now + timedelta(hours=2)).isoformat(), "2999-01-01"):
        with pytest.raises(InputError, match=r"is yet to come: it is .* in UTC"):
            past_time_of("--as-of", text)
        assert time_of("--since", text) > now, "records may be stamped so"
