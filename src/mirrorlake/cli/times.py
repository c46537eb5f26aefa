"""Times on the command line."""

from datetime import datetime, timezone

from mirrorlake.errors import InputError


def time_of(option: str, text: str) -> datetime:
    """A time that an option was given, in UTC where it names no zone. Raises InputError."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise InputError(
            f"{option} {text}: write a time as 2026-11-21 or 2026-11-21T03:12:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
