"""Times for rows of which the newest counts: they rise above the table's, whatever the clock.

A clock may have been ahead: that of another host, or of this one before it was set. A row with the
time of now would be older than a row from then, and count for nothing until that time has passed.
"""

from datetime import datetime, timedelta, timezone

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader

_MOMENT = timedelta(microseconds=1)  # the resolution of a TIMESTAMP
#: Samples that lie so far in the future come from a clock that was wrong, and readers leave them
#: out (view `replication_lag`).
_TO_COME = timedelta(minutes=5)


def time_behind(newest: datetime | None) -> datetime:
    """Now, with its zone; or a moment behind `newest` (in UTC), where that is later."""
    now = datetime.now(timezone.utc)
    if newest is None:
        return now
    zoned = newest if newest.tzinfo else newest.replace(tzinfo=timezone.utc)
    return max(now, zoned + _MOMENT)


def time_of_sample(now: datetime, newest: datetime | None) -> datetime:
    """Now; or a moment behind the newest sample, where it lies in the future and readers still go
    by it: it would hide how the flow is until then."""
    return newest + _MOMENT if newest is not None and now <= newest < now + _TO_COME else now


def next_time(reader: Reader, query: str) -> datetime:
    """As `time_behind`, for the newest row, whose time (`at`) a query returns."""
    (row,) = reader.query_rows(query) or ({"at": None},)
    return time_behind(row["at"])


def time_of_change(lake: Lake) -> datetime:
    """As `time_behind`, for a row of `changes`: behind the newest one when this process began, and
    all that it recorded since. No other process responds to these rows, so the lake is asked once:
    in a store, asking costs each row two more requests."""
    known = lake.changed_at
    lake.changed_at = next_time(lake.now, "newest_change") if known is None else time_behind(known)
    return lake.changed_at
