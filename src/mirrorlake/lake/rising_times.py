"""Times of rows of which the newest one counts: they rise from what the table knows, the clock only
helps.

A clock may have been ahead, of another host, or of this one before it was set: what is noted now
would be older than what was noted then, and count for nothing until that time has passed.
"""

from datetime import datetime, timedelta, timezone

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Reader

_MOMENT = timedelta(microseconds=1)  # what a TIMESTAMP tells apart
#: Samples of a time that is to come by as much are of a clock that was wrong, and readers leave
#: them out (view `replication_lag`).
_TO_COME = timedelta(minutes=5)


def time_behind(newest: datetime | None) -> datetime:
    """Now, with its zone; where the newest row has a later time (in UTC, with a zone or without), a
    moment behind that."""
    now = datetime.now(timezone.utc)
    if newest is None:
        return now
    zoned = newest if newest.tzinfo else newest.replace(tzinfo=timezone.utc)
    return max(now, zoned + _MOMENT)


def time_of_sample(now: datetime, newest: datetime | None) -> datetime:
    """Now, or a moment behind the newest sample where readers go by that, though it is of a time to
    come: it would hide how the flow is until then."""
    return newest + _MOMENT if newest is not None and now <= newest < now + _TO_COME else now


def next_time(reader: Reader, query: str) -> datetime:
    """The same, behind the newest row of which a query tells the time (`at`)."""
    (row,) = reader.query_rows(query) or ({"at": None},)
    return time_behind(row["at"])


def time_of_change(lake: Lake) -> datetime:
    """The same of a row of `changes`, which no other process answers: behind the newest one when
    this process began, and all that it has noted since. The lake is asked once, since in a store
    each row costs two requests more than the one before."""
    known = lake.changed_at
    lake.changed_at = next_time(lake.now, "newest_change") if known is None else time_behind(known)
    return lake.changed_at
