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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mirrorlake.lake.lake import Lake
from mirrorlake.lake.place import Place
from mirrorlake.landing.gaps import LeftQuery
from mirrorlake.landing.ranges import read_document
from mirrorlake.offsets.positions import TopicAndPartition, by_topic, from_topics

#: More than any batch's number: no batch of a query that has come so far is committed.
_NO_MORE = 2**62


def begin_query(lake: Lake, alias: str) -> Path:
    """Where a query keeps its offsets that is about to be planned: its mark is made, and the
    queries before it are ended.

    To be called before the table is asked where to go on, in this order: a process that was killed
    may leave a query that still runs, and one that stands still behind this is fenced by the next
    one, whatever it had read of the table. What comes to no query is to be forgotten.
    """
    checkpoint = new_checkpoint(lake, alias)
    end_queries(lake, alias, but=checkpoint.name)
    return checkpoint


def end_queries(lake: Lake, alias: str, but: str = "") -> None:
    """See to it that no query before now can commit to `records` any more, and that who runs one
    sees it (`is_fenced_by_delta`). The marks of those whose batches a session commits stay, for
    `left_queries`. Queries are known by their folders too: marks lie beside the leases, which a
    cleaning of that place takes away while a process that stands still has yet to go on."""
    root, marks = _root(lake, alias), _marks(lake, alias)
    there = {path.name for path in root.iterdir()} if root.is_dir() else set()
    for name in sorted(there.union(marks.names()) - {but}):
        kept = _kept(marks / name)
        if kept is not None and kept["ended"]:
            continue
        with suppress(FileNotFoundError, NotADirectoryError):
            # before it is fenced: then nothing is skipped of a query that sees its name still
            _metadata(root / name).replace(_put_aside(root / name))
        for application in (application_of(root / name), _query_id(root / name)):
            if application is not None:
                lake.fence("records", application, _NO_MORE)
        if kept is not None:
            (marks / name).write(json.dumps({**kept, "ended": True}).encode())
            continue
        shutil.rmtree(root / name, ignore_errors=name not in there)
        (marks / name).delete()


def is_fenced(lake: Lake, application: str) -> bool:
    """Whether another process has begun to land the same cluster since, and nothing of an
    application is committed any more."""
    return (lake.application_version("records", application) or 0) >= _NO_MORE


def is_fenced_by_delta(lake: Lake, query_id: str, checkpoint: Path) -> bool:
    """The same of Delta's own sink, which says nothing when it skips batches. Who fences it takes
    the name in its checkpoint away before, which costs less to see than what a catalog's table
    knows."""
    return not has_name(checkpoint) and is_fenced(lake, query_id)


def has_name(checkpoint: Path) -> bool:
    """Whether the name of Delta's own sink is in a checkpoint, as far as this process sees."""
    return _metadata(checkpoint).exists()


def keep_read(
    lake: Lake,
    alias: str,
    checkpoint: Path,
    ends: Mapping[TopicAndPartition, int],
    generations: Mapping[TopicAndPartition, int],
) -> None:
    """Keep in its mark how far a query's tasks say that they have read: of what is staged behind
    that, who ends it looks whether it is whole. Raises OSError."""
    kept = {"ends": by_topic(ends), "generations": by_topic(generations), "ended": False}
    (_marks(lake, alias) / checkpoint.name).write(json.dumps(kept).encode())


def left_queries(lake: Lake, alias: str, own: str = "") -> list[LeftQuery]:
    """The queries that were ended by `end_queries`, or are a caller's `own`, and that were not
    forgotten; of those whose batches a session commits: what the driver commits it has read."""
    marks, left = _marks(lake, alias), []
    for name in sorted(marks.names()):
        kept = _kept(marks / name)
        if kept is not None and (kept["ended"] or name == own):
            ends, generations = (from_topics(kept[of]) for of in ("ends", "generations"))
            left.append(LeftQuery(name, ends, generations))
    return left


def _kept(mark: Place) -> dict[str, Any] | None:
    """What `keep_read` kept; None where it did not, or an earlier version made the mark."""
    try:
        content = mark.read()
    except FileNotFoundError:
        return None
    kept: dict[str, Any] | None = json.loads(content) if content else None
    return kept


def newest_end(checkpoint: Path) -> dict[TopicAndPartition, int] | None:
    """Where the newest batch ends that a query has planned; None where that cannot be seen."""
    folder = checkpoint / "offsets"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    batches = [int(name) for name in names if name.isdecimal()]
    return read_document(planned_end(checkpoint, max(batches)))[0] if batches else None


def forget_query(lake: Lake, alias: str, name: str) -> None:
    """Remove the checkpoint of a query that has ended, and its mark; no other: another process may
    have begun since."""
    shutil.rmtree(_root(lake, alias) / name, ignore_errors=True)
    (_marks(lake, alias) / name).delete()


def new_checkpoint(lake: Lake, alias: str) -> Path:
    """Where a query keeps its offsets; only its mark is made."""
    name = uuid.uuid4().hex[:12]
    (_marks(lake, alias) / name).create(b"")
    return _root(lake, alias) / name


def make_folder(checkpoint: Path) -> None:
    """Make the folder of a query that keeps nothing there, as Spark does of one that it runs: by
    it, as by its mark, who begins another query finds its name."""
    checkpoint.mkdir(parents=True, exist_ok=True)


def planned_end(checkpoint: Path, batch: int) -> dict[str, Any]:
    """Where a batch ends, as the query's planner has it (`ranges.offsets_document`): Spark
    writes it down before the batch begins."""
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
    for file in (_metadata(checkpoint), _put_aside(checkpoint)):
        with suppress(FileNotFoundError, NotADirectoryError, ValueError, KeyError):
            return str(json.loads(file.read_text(encoding="utf-8"))["id"])
    return None


def _metadata(checkpoint: Path) -> Path:
    """Where Spark keeps a query's id."""
    return checkpoint / "metadata"


def _put_aside(checkpoint: Path) -> Path:
    """Where it is once the query is being ended: who goes on where that was killed has to know
    it."""
    return checkpoint / "metadata-ended"


def _marks(lake: Lake, alias: str) -> Place:
    return lake.leases / "landing" / alias


def _root(lake: Lake, alias: str) -> Path:
    return lake.checkpoints / "land" / alias
