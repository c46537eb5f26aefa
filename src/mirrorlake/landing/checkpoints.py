"""The checkpoints of landing queries, and the names that their commits to `records` carry.

Each query is marked in the lake (`Lake.leases`) before it begins: its checkpoint may be a folder on
another host, and a process that fences queries that still run has to know their names. No query
goes on from the checkpoint of another: a partition goes on at the offset after its newest one in
the table, whatever a dead process left between Delta's commit and Spark's.
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

#: More than any batch's number: a query fenced with it commits no batch any more.
_NO_MORE = 2**62


def begin_query(lake: Lake, alias: str) -> Path:
    """The checkpoint of a query that is about to be planned: makes its mark, ends earlier ones.

    To be called before the table is asked where to go on, in this order: a killed process may have
    left a query that still runs, and a process that stands still after this is fenced by the next
    one, whatever it had read. A checkpoint that gets no query is to be forgotten.
    """
    checkpoint = new_checkpoint(lake, alias)
    end_queries(lake, alias, but=checkpoint.name)
    return checkpoint


def end_queries(lake: Lake, alias: str, but: str = "") -> None:
    """Make sure that no earlier query can commit to `records` any more, and that its process sees
    it (`is_fenced_by_delta`). The marks of queries whose batches a session commits stay, for
    `left_queries`. Queries are also known by their folders: marks lie beside the leases, and a
    cleaning of that place may remove them while a process that stands still has yet to go on."""
    root, marks = _root(lake, alias), _marks(lake, alias)
    there = {path.name for path in root.iterdir()} if root.is_dir() else set()
    for name in sorted(there.union(marks.names()) - {but}):
        kept = _kept(marks / name)
        if kept is not None and kept["ended"]:
            continue
        with suppress(FileNotFoundError, NotADirectoryError):
            # before the fence: so nothing is skipped of a query that still sees its name
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
    """Whether another process has begun to land the cluster, so that nothing more is committed."""
    return (lake.application_version("records", application) or 0) >= _NO_MORE


def is_fenced_by_delta(lake: Lake, query_id: str, checkpoint: Path) -> bool:
    """The same for Delta's own sink, which skips batches without a word. A process that fences a
    query first takes the name out of its checkpoint, cheaper to see than a catalog's table."""
    return not has_name(checkpoint) and is_fenced(lake, query_id)


def has_name(checkpoint: Path) -> bool:
    """Whether a checkpoint has the name of Delta's own sink, as far as this process sees."""
    return _metadata(checkpoint).exists()


def keep_read(
    lake: Lake,
    alias: str,
    checkpoint: Path,
    ends: Mapping[TopicAndPartition, int],
    generations: Mapping[TopicAndPartition, int],
) -> None:
    """Keep in a query's mark how far its tasks have reported to have read: behind that, the end of
    the query has to check whether the stage is whole. Raises OSError."""
    kept = {"ends": by_topic(ends), "generations": by_topic(generations), "ended": False}
    (_marks(lake, alias) / checkpoint.name).write(json.dumps(kept).encode())


def left_queries(lake: Lake, alias: str, own: str = "") -> list[LeftQuery]:
    """The queries that `end_queries` ended, or that are the caller's `own`, and that were not
    forgotten. Only those whose batches a session commits: the driver has read what it commits."""
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
    """Where the newest planned batch of a query ends; None if that cannot be seen."""
    folder = checkpoint / "offsets"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    batches = [int(name) for name in names if name.isdecimal()]
    return read_document(planned_end(checkpoint, max(batches)))[0] if batches else None


def forget_query(lake: Lake, alias: str, name: str) -> None:
    """Remove the checkpoint and mark of an ended query; no others: another may have begun."""
    shutil.rmtree(_root(lake, alias) / name, ignore_errors=True)
    (_marks(lake, alias) / name).delete()


def new_checkpoint(lake: Lake, alias: str) -> Path:
    """The checkpoint of a new query; only its mark is made."""
    name = uuid.uuid4().hex[:12]
    (_marks(lake, alias) / name).create(b"")
    return _root(lake, alias) / name


def make_folder(checkpoint: Path) -> None:
    """Make the folder of a query that keeps nothing in it, as Spark does for its own: the next
    query finds this one's name by its folder, as by its mark."""
    checkpoint.mkdir(parents=True, exist_ok=True)


def planned_end(checkpoint: Path, batch: int) -> dict[str, Any]:
    """Where a batch ends, by its planner (`ranges.offsets_document`): noted before the batch."""
    offsets = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(offsets.splitlines()[-1])
    return document


def pace_file(lake: Lake, alias: str) -> Path:
    """Where the pace of a cluster's batches is kept for queries to come. Earlier versions look
    elsewhere, and would not understand it."""
    return _root(lake, alias).with_name(f"{alias}-batches.json")


def application_of(checkpoint: Path) -> str:
    """The name that the commits of a query with this checkpoint carry, if the driver makes them."""
    return f"mirrorlake land {checkpoint.name}"


def _query_id(checkpoint: Path) -> str | None:
    """The id by which Delta's sink commits batches of a checkpoint; None if it never began."""
    for file in (_metadata(checkpoint), _put_aside(checkpoint)):
        with suppress(FileNotFoundError, NotADirectoryError, ValueError, KeyError):
            return str(json.loads(file.read_text(encoding="utf-8"))["id"])
    return None


def _metadata(checkpoint: Path) -> Path:
    """The file in which Spark keeps a query's id."""
    return checkpoint / "metadata"


def _put_aside(checkpoint: Path) -> Path:
    """Where that file goes while the query is ended: one that resumes after a kill needs the id."""
    return checkpoint / "metadata-ended"


def _marks(lake: Lake, alias: str) -> Place:
    return lake.leases / "landing" / alias


def _root(lake: Lake, alias: str) -> Path:
    return lake.checkpoints / "land" / alias
