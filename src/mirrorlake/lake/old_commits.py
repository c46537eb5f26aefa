"""How far back the log of a table goes that streams of others follow: for a week, so that one which
rested goes on where it stopped (docs/downstream.md).

Such a stream reads the commits one by one, and the files that each added. So a commit is kept, and
with it the files that it took away: of small files a running process makes few (`run/upkeep.py`).
What opens the table goes by its newest checkpoint, and lists the log; so there is a bound on how
many commits are kept, and of older checkpoints, each as large as the table has files, few are
(https://github.com/delta-io/delta/blob/master/PROTOCOL.md).
"""

import json
import logging
import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from datetime import timedelta
from itertools import chain

from mirrorlake.lake.delta_log import DeltaLog, files_of
from mirrorlake.lake.log_repair import checkpoints_of
from mirrorlake.threads import side_by_side

logger = logging.getLogger(__name__)

#: How long commits are kept, and how many at most: those of a day at two a second, and some more.
KEPT = timedelta(days=7)
MOST_COMMITS = 200_000
#: The newest checkpoints that are kept, by which others may be opening the table now, and of the
#: older ones the first in so many versions.
_NEWEST_CHECKPOINTS, _VERSIONS = 20, 1_000
#: Commits that one turn deletes at most.
_AT_ONCE = 20_000
_NUMBERED = re.compile(r"\.?(\d{20})\.")


def shorten(log: DeltaLog, now_ms: int, most: int = MOST_COMMITS) -> int:
    """Delete the commits that are neither of the last `KEPT` before a time nor of the newest
    `most`, the files that they took away, and checkpoints that no reader needs. Returns how many
    commits went.

    It is a checkpoint that the log begins with, so up to `_VERSIONS` commits more stay. A process
    that dies on the way leaves files that are deleted the next time. Raises OSError, DeltaError.
    """
    names = log.names()
    commits = sorted(int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.json", name))
    checkpoints = checkpoints_of(names)
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
    """When a commit was made, as it says itself, in ms since 1970; as of now where it says
    nothing, as Delta does not ask it to, and long ago where it is gone meanwhile."""
    text = log.text(version)
    if text is None:
        return 0
    actions = (json.loads(line) for line in text.splitlines() if "commitInfo" in line)
    times = (action["commitInfo"].get("timestamp") for action in actions if "commitInfo" in action)
    return int(next(times, None) or now_ms)


def _delete(log: DeltaLog, names: Collection[str], gone: Sequence[int], below: int) -> None:
    """Delete what some commits took away from the table, and then all of the log below a
    version."""
    stale = [name for name in names if (at := _NUMBERED.match(name)) and int(at[1]) < below]
    if not stale:
        return
    removed = {*chain.from_iterable(side_by_side(lambda each: _removed(log, each), gone))}
    # one that is a part of the table again, by Delta's RESTORE, or lies elsewhere, stays
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
    """The checkpoints, of some that rise, that stand between the log's first and its newest ones
    without being the first in `_VERSIONS` versions."""
    between = [version for version in checkpoints[:-_NEWEST_CHECKPOINTS] if version > base]
    stretches = {base // _VERSIONS}
    spare = []
    for version in between:
        if version // _VERSIONS in stretches:
            spare.append(version)
        stretches.add(version // _VERSIONS)
    return spare
