"""The checkpoints of landing queries, and the names by which their commits to `records` are known.

Each is marked in the lake (`Lake.leases`) before it begins: a checkpoint may be a folder of another
host's, and who fences what still runs has to know its name.

No query goes on from the checkpoint of another: a batch is committed whole, so the offset after the
newest one in the table is where a partition goes on, and a process that died between Delta's commit
and Spark's has left nothing that could contradict it.
"""

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.place import Place

#: More than any batch's number: no batch of a query that has come so far is committed.
_NO_MORE = 2**62


def end_queries(lake: Lake, alias: str) -> None:
    """See to it that no query before now can commit to `records` any more, and forget their
    checkpoints.

    To be called before the table is asked where to go on: a process that was killed may leave a
    query that still runs.
    """
    root, marks = _root(lake, alias), _marks(lake, alias)
    there = {path.name for path in root.iterdir()} if root.is_dir() else set()
    for name in sorted(there.union(marks.names())):
        for application in (application_of(root / name), _query_id(root / name)):
            if application is not None:
                lake.fence("records", application, _NO_MORE)
        shutil.rmtree(root / name, ignore_errors=name not in there)
        (marks / name).delete()


def is_fenced(lake: Lake, application: str) -> bool:
    """Whether another process has begun to land the same cluster since, and nothing of an
    application is committed any more."""
    return (lake.application_version("records", application) or 0) >= _NO_MORE


def is_fenced_by_delta(lake: Lake, query_id: str, checkpoint: Path) -> bool:
    """The same of Delta's own sink, which says nothing when it skips batches. Who fences it takes
    its checkpoint away, too, which costs less to see than what a catalog's table knows."""
    return not (checkpoint / "metadata").exists() and is_fenced(lake, query_id)


def forget_query(lake: Lake, alias: str, name: str) -> None:
    """Remove the checkpoint of a query that has ended, and its mark; no other: another process may
    have begun since."""
    shutil.rmtree(_root(lake, alias) / name, ignore_errors=True)
    (_marks(lake, alias) / name).delete()


def new_checkpoint(lake: Lake, alias: str) -> Path:
    """Where a query that starts now keeps its offsets; only its mark is made."""
    name = uuid.uuid4().hex[:12]
    (_marks(lake, alias) / name).create(b"")
    return _root(lake, alias) / name


def planned_end(checkpoint: Path, batch: int) -> dict[str, Any]:
    """Where a batch ends, as the query's planner has it (`job.offsets_document`): Spark writes it
    down before the batch begins."""
    offsets = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(offsets.splitlines()[-1])
    return document


def pace_file(lake: Lake, alias: str) -> Path:
    """Where what batches of a cluster say of the next ones is kept, for queries to come. Earlier
    versions look elsewhere, and would not understand it."""
    return _root(lake, alias).with_name(f"{alias}-batches.json")


def application_of(checkpoint: Path) -> str:
    """What the commits of a query with this checkpoint are known by, where they are the
    driver's."""
    return f"mirrorlake land {checkpoint.name}"


def _query_id(checkpoint: Path) -> str | None:
    """The id under which Delta's own sink commits the batches of a checkpoint; None if it never
    came to begin."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError):
        return None


def _marks(lake: Lake, alias: str) -> Place:
    return lake.leases / "landing" / alias


def _root(lake: Lake, alias: str) -> Path:
    return lake.checkpoints / "land" / alias
