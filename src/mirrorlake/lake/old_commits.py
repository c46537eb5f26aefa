"""Keeps the log of a table that downstream streams follow for a week back, so that a stream that
rested goes on where it stopped (docs/downstream.md).

Such a stream reads the commits one by one, and the files that each added, so a commit is kept
together with the files that it removed. Opening the table takes its newest checkpoint and a listing
of the log: so the number of kept commits has a bound, and few older checkpoints, each as large as
the table has files, are kept.
"""

import json
import logging
import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from datetime import timedelta
from itertools import chain

from mirrorlake.lake.delta_log import DeltaLog, files_of, versions_in
from mirrorlake.lake.log_repair import checkpoints_of
from mirrorlake.threads import side_by_side

logger = logging.getLogger(__name__)

#: How long commits are kept, and how many at most: a day's at two a second, and some more.
KEPT = timedelta(days=7)
MOST_COMMITS = 200_000
#: How many of the newest checkpoints are kept, by which others may be opening the table now; of the
#: older ones, the first in so many versions is.
_NEWEST_CHECKPOINTS, _VERSIONS = 20, 1_000
#: The most commits that one turn deletes.
_AT_ONCE = 20_000
_NUMBERED = re.compile(r"\.?(\d{20})\.")


def shorten(log: DeltaLog, now_ms: int, most: int = MOST_COMMITS) -> int:
    """Delete commits older than `KEPT` before a time or not among the newest `most`, the files that
    they removed, and checkpoints that no reader needs. Returns how many commits were deleted.

    The log has to begin with a checkpoint, so up to `_VERSIONS` more commits stay. Files that a
    dying process leaves are deleted the next time. Raises OSError, DeltaError.
    """
    names = log.names()
    commits, checkpoints = versions_in(names), checkpoints_of(names)
    if not commits or not checkpoints:
        return 0
    oldest = now_ms - KEPT // timedelta(milliseconds=1)
    first = bisect_left(commits, oldest, key=lambda version: _time_of(log, version, now_ms))
    first = max(first, len(commits) - most)
    needed = commits[first] if first < len(commits) else checkpoints[-1]
    base = max((version for version in checkpoints if version <= needed), default=-1)
    gone = [version for version in commits if version < base][:_AT_ONCE]
    below = min(base, gone[-1] + 1) if gone else base
    _delete(log, names, gone, below)
    spare = [log.checkpoint_of(version) for version in _spare(checkpoints, base)]
    side_by_side(lambda file: file.delete(), spare)
    if gone:
        logger.info("table %s: commits up to %d are not kept", log.table.name, gone[-1])
    return len(gone)


def _time_of(log: DeltaLog, version: int, now_ms: int) -> int:
    """When a commit was made, by its own account, in ms since 1970: `now_ms` where it has no time,
    which Delta does not demand, and 0 where it is gone meanwhile."""
    text = log.text(version)
    if text is None:
        return 0
    actions = (json.loads(line) for line in text.split("\n") if "commitInfo" in line)
    times = (action["commitInfo"].get("timestamp") for action in actions if "commitInfo" in action)
    return int(next(times, None) or now_ms)


def _delete(log: DeltaLog, names: Collection[str], gone: Sequence[int], below: int) -> None:
    """Delete the files that some commits removed, and then all of the log below a version."""
    stale = [name for name in names if (at := _NUMBERED.match(name)) and int(at[1]) < below]
    if not stale:
        return
    removed = {*chain.from_iterable(side_by_side(lambda each: _removed(log, each), gone))}
    # a file that is in the table again, by Delta's RESTORE, or lies elsewhere, stays
    files = removed.difference(files_of(log.opened())) if removed else removed
    ours = [path for path in files if not path.startswith("/") and "://" not in path]
    side_by_side(lambda path: (log.table / path).delete(), ours)
    side_by_side(lambda name: (log.folder / name).delete(), stale)


def _removed(log: DeltaLog, version: int) -> Sequence[str]:
    try:
        commit = log.commit(version)
    except FileNotFoundError:  # another process shortens the log, too
        return ()
    return () if commit is None else commit.removed


def _spare(checkpoints: Sequence[int], base: int) -> list[int]:
    """The rising checkpoints, but the first, the newest ones, and one in `_VERSIONS` versions."""
    between = [version for version in checkpoints[:-_NEWEST_CHECKPOINTS] if version > base]
    stretches = {base // _VERSIONS}
    spare = []
    for version in between:
        if version // _VERSIONS in stretches:
            spare.append(version)
        stretches.add(version // _VERSIONS)
    return spare
