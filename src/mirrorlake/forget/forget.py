"""`mirrorlake forget`: deletes staged records by a predicate, while the map stays exact.

The order: note the offsets, look whether a replay or restore has begun meanwhile, delete the
records, note that it is done. If a process dies in between, the next call or `maintain` does the
rest; no flow needs these records meanwhile, since flows leave out noted offsets from their next
start on. The predicate is written nowhere, since one that picks a
person's records may itself be personal data: neither in the tables nor in Delta's log, where the
deleting statement names offsets.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from mirrorlake import failpoints
from mirrorlake.errors import InputError
from mirrorlake.extras import installed
from mirrorlake.forget.flows import SourceFlows
from mirrorlake.forget.related_topics import StagedTopic, is_about_content, topics_with_same_records
from mirrorlake.forget.still_needed import FlowPositions, StillNeeded, still_needed
from mirrorlake.lake.definitions import sql_text
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.forgotten import finish, forgetting, resends_from
from mirrorlake.lake.reader import Frame, Frames, Reader
from mirrorlake.lake.same_meaning import means_the_same
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.stage_index import StageIndex

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_STAGED = "topic STRING, partition INT, generation INT, below BIGINT"
_NEEDED = "flow STRING, topic STRING, partition INT, generation INT, first BIGINT, below BIGINT"


def forget(
    deployment: Deployment,
    topics: Sequence[str],
    where: str,
    source: str | None = None,
    dry_run: bool = False,
    vacuum_hours: int = 168,
) -> dict[str, Any]:
    """Delete the staged records of some topics that a predicate picks, except those that a flow
    still needs.

    Args:
        deployment: the lake, and the clusters of its topology file.
        topics: named as at the source.
        where: the predicate, in Spark's SQL, over the columns of `records`.
        source: the alias of the source cluster; None if only one has staged such topics.
        dry_run: only count.
        vacuum_hours: how long `maintain` keeps files that were replaced.

    Returns:
        {"source", "dry_run", "forget_id", "records", "files", "waiting", "topics": [{topic,
        records, files, waiting}], "waits": [{flow, why}] for the records that are `waiting`,
        "elsewhere": [{source, topic, records}] of staged topics with the same records, of which the
        predicate picks so many too (None: it cannot be evaluated there), "replays": names of
        replays whose predicates about these topics are in `changes`, "finished": records of
        earlier, killed calls, "deleted_at", "gone_after"}: the first `maintain` after `gone_after`
        removes the files that still hold the records. The last two are None if nothing was
        deleted, and so is the id unless something was noted: what a replay or restore may need that
        began meanwhile is `waiting`, and goes once that has ended.

    Raises:
        InputError: the predicate cannot be run, or a topic is not staged.
        LeaseTaken: another process is forgetting records.
    """
    lake = deployment.lake
    with forgetting(lake):
        finished = 0 if dry_run else finish(lake)
        stage = StageFiles(lake)
        with stage.reading() as index:
            alias = _source(index, topics, source)
        with ExitStack() as held:
            request = _Request(deployment, alias, tuple(topics), where, dry_run)
            document = _forget(request, stage, held, finished)
        if document["deleted_at"] is not None:
            document["gone_after"] = document["deleted_at"] + timedelta(hours=vacuum_hours)
        return document


class _Request:
    """One call's request."""

    def __init__(
        self, deployment: Deployment, alias: str, topics: tuple[str, ...], where: str, dry_run: bool
    ) -> None:
        self.lake, self.alias, self.topics, self.dry_run = deployment.lake, alias, topics, dry_run
        self.flows = SourceFlows(deployment, alias, topics)
        self._where = where
        lake = self.lake
        self._reader = lake.upkeep("records").reader if means_the_same(where) else lake

    def _matching(self, places: Sequence[StagedTopic]) -> str:
        """The query for the records of some topics that the predicate picks."""
        names = range(len(places))
        wanted = (f"(source_cluster = :cluster{at} AND topic = :topic{at})" for at in names)
        # The predicate does not see records of other topics, for which it may fail.
        return (
            "SELECT source_cluster, topic, partition, coalesce(generation, 0) AS generation, "
            "offset, path FROM (SELECT *, _metadata.file_path AS path FROM records "
            f"WHERE {' OR '.join(wanted)}) AS records WHERE (\n{self._where}\n)"
        )

    def _reading(self, ask: Callable[[Reader], Answer]) -> Answer:
        """Query the lake with the predicate: by Spark if DuckDB fails, or might read the predicate
        differently. Raises InputError."""
        try:
            return ask(self._reader)
        except InputError as error:
            if self._reader is self.lake or not installed("spark"):
                raise InputError(f"the predicate cannot be run: {error}") from error
            # without the error: DuckDB's text may quote the predicate, perhaps personal data
            logger.info("Spark is asked what the predicate picks, since DuckDB cannot run it")
            self._reader = self.lake
            return self._reading(ask)

    def elsewhere(self, index: StageIndex) -> list[dict[str, Any]]:
        """How many records of other staged topics with the same records the predicate picks too."""
        mine = [(self.alias, topic) for topic in self.topics]
        rows = self.lake.ask("map_extents")
        mirrors = {(row["flow"], row["topic"], row["target_topic"]) for row in rows}
        aliases = {row["alias"]: row["cluster_id"] for row in self.lake.ask_table("clusters")}
        staged = {(alias, topic) for alias, topic, _, _ in index.parts()}
        places = topics_with_same_records(mine, mirrors, aliases, staged)
        counts: dict[StagedTopic, int | None] = dict.fromkeys(places)
        if places and is_about_content(self._where):
            frames = {"matching": self._matching(places)}
            rows = self._reading(
                lambda reader: reader.query_rows("forget_elsewhere", frames, **_named(places))
            )
            counts = {(row["source_cluster"], row["topic"]): row["record_count"] for row in rows}
        return [
            {"source": alias, "topic": topic, "records": count}
            for (alias, topic), count in sorted(counts.items())
        ]

    def replays(self) -> list[str]:
        """Replays of the topics whose predicates are in `changes`."""
        rows = self.lake.ask("replays_with_words")
        return [
            row["flow"]
            for row in rows
            if row["source"] == self.alias and row["topic"] in self.topics
        ]

    def counts(self, stood: "_Snapshot") -> list[dict[str, Any]]:
        """How many records may go, and how many have to wait, by topic. Raises InputError."""
        args, frames = self._picked(stood)
        return list(
            self._reading(lambda reader: reader.query_rows("forget_counts", frames, **args))
        )

    def note(self, stood: "_Snapshot", forget_id: str) -> None:
        """Note the offsets of records that may go, as ranges. If the process dies meanwhile, the
        noted ones go, and the next call picks the others."""
        args, frames = self._picked(stood)
        args |= {"source_cluster": self.alias, "forget_id": forget_id}
        text = sql_text("queries", "forget_ranges")
        ranges = self._reading(lambda reader: reader.arrow(text, args, frames))
        for batch in ranges:
            self.lake.append("forgotten", pa.Table.from_batches([batch]))

    def _picked(self, stood: "_Snapshot") -> tuple[dict[str, object], Frames]:
        """What the predicate picks, as a frame `picked`, and the arguments of its query."""
        mine = [(self.alias, topic) for topic in self.topics]
        frames: dict[str, Frame | str] = {
            "picked": sql_text("queries", "forget_picked"),
            "matching": self._matching(mine),
            "staged": Frame(_STAGED, stood.staged),
            "still_needed": Frame(_NEEDED, [tuple(needed) for needed in stood.needed]),
        }
        return _named(mine), frames


def _named(places: Sequence[StagedTopic]) -> dict[str, object]:
    """The arguments of a query by `_Request._matching`."""
    clusters = {f"cluster{at}": alias for at, (alias, _) in enumerate(places)}
    return {**clusters, **{f"topic{at}": topic for at, (_, topic) in enumerate(places)}}


class _Snapshot(NamedTuple):
    """What the stage held: the ends of each generation of a partition (topic, partition,
    generation, the offset behind the last one), and what must stay for flows."""

    staged: list[tuple[str, int, int, int]]
    needed: list[StillNeeded]


def _forget(request: _Request, stage: StageFiles, held: ExitStack, finished: int) -> dict[str, Any]:
    reasons: dict[str, str] = {}
    stood = _snapshot(request, stage, request.flows.by_their_maps())
    counts = request.counts(stood)
    if any(row["waiting"] for row in counts):
        # Only now block flows from producing, and query targets: usually all is mapped.
        known = request.flows.held(
            dict.fromkeys(needed.flow for needed in stood.needed), held, reasons
        )
        # Records that landed since stay: a flow that needed nothing before is not held, and may
        # be sending them.
        stood = _snapshot(request, stage, known)._replace(staged=stood.staged)
        counts = request.counts(stood)
    with stage.reading() as index:
        elsewhere = request.elsewhere(index)
    document: dict[str, Any] = {
        "source": request.alias,
        "dry_run": request.dry_run,
        "forget_id": None,
        **{name: sum(row[name] for row in counts) for name in ("records", "files", "waiting")},
        "topics": counts,
        "waits": _waits(stood.needed, reasons) if any(row["waiting"] for row in counts) else [],
        "elsewhere": elsewhere,
        "replays": request.replays(),
        "finished": finished,
        "deleted_at": None,
        "gone_after": None,
    }
    if document["records"] and not request.dry_run:
        document["forget_id"] = forget_id = uuid.uuid4().hex[:12]
        request.note(stood, forget_id)
        failpoints.reached("forget-noted")
        finish(request.lake, forget_id, request.flows.resends)
        if any(row["forget_id"] == forget_id for row in request.lake.ask("forget_pending")):
            return _kept(document, resends_from(request.lake, request.alias, request.topics))
        document["deleted_at"] = datetime.now(timezone.utc)
    return document


def _kept(document: Mapping[str, Any], going: Collection[str]) -> dict[str, Any]:
    """The document of a call whose noted records stay for replays and restores that are going
    on."""
    topics = [
        {**row, "records": 0, "files": 0, "waiting": row["waiting"] + row["records"]}
        for row in document["topics"]
    ]
    counts = {name: sum(row[name] for row in topics) for name in ("records", "files", "waiting")}
    why = "it began meanwhile: once it has ended, the next call or `maintain` deletes what waits"
    waits = [*document["waits"], *({"flow": name, "why": why} for name in going)]
    return {**document, **counts, "topics": topics, "waits": waits}


def _snapshot(request: _Request, stage: StageFiles, flows: Sequence[FlowPositions]) -> _Snapshot:
    with stage.reading() as index:
        staged = {topic: index.topics(request.alias)[topic] for topic in request.topics}
        ends = [
            (topic, partition, generation, end)
            for topic, partitions in staged.items()
            for partition, ranges in partitions.items()
            for generation, end in ranges.ends().items()
        ]
        return _Snapshot(
            ends, [needed for known in flows for needed in still_needed(known, staged)]
        )


def _waits(waiting: Sequence[StillNeeded], reasons: dict[str, str]) -> list[dict[str, str]]:
    """The flows that records wait for, and why."""
    why = "what it has produced is not all in its map yet: run it once"
    return [
        {"flow": name, "why": reasons.get(name, why)}
        for name in dict.fromkeys(needed.flow for needed in waiting)
    ]


def _source(index: StageIndex, topics: Sequence[str], source: str | None) -> str:
    """The cluster that the topics were staged from. Raises InputError."""
    clusters = sorted({cluster for cluster, topic, _, _ in index.parts() if topic in topics})
    wanted = [source] if source is not None else clusters
    if len(wanted) > 1:
        raise InputError(
            f"topics of several clusters have such names ({', '.join(wanted)}); name one with "
            "--from"
        )
    missing = [topic for topic in topics if not wanted or topic not in index.topics(wanted[0])]
    if missing:
        place = f" from cluster {wanted[0]}" if wanted else ""
        raise InputError(
            f"the stage holds no topic {', '.join(missing)}{place}; topics are named as at the "
            "source"
        )
    return wanted[0]
