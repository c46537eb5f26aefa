"""Times on the command line."""

from datetime import datetime, timedelta, timezone

from mirrorlake.errors import InputError

#: How much the clocks of two machines may differ.
_AHEAD = timedelta(minutes=5)


def time_of(option: str, text: str) -> datetime:
    """A time that an option was given, in UTC where it names no zone. Raises InputError."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise InputError(
            f"{option} {text}: write a time as 2026-11-21 or 2026-11-21T03:12:00, both in UTC, "
            "or with its zone, as 2026-11-21T03:12:00+01:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def past_time_of(option: str, text: str) -> datetime:
    """The same of a time that has been. One to come is a mistyped year, or a local time without its
    zone, by which everything would be taken, or nothing."""
    moment, now = time_of(option, text), datetime.now(timezone.utc)
    if moment > now + _AHEAD:
        raise InputError(
            f"{option} {text} is yet to come: it is {now:%Y-%m-%dT%H:%M:%S} in UTC, in which a "
            "time without a zone is read; write 2026-11-21T03:12:00+01:00 for one with its zone"
        )
    return moment
