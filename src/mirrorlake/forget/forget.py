"""`mirrorlake forget`: staged records are deleted by a predicate, and the map stays exact.

The order of events: what goes is noted by its offsets, then deleted, then said to be done. Who dies
in between leaves the rest to the next call, or to `maintain`; flows leave out what is noted from
their next start on, so no flow needs it meanwhile. The predicate is written down nowhere, since
what picks a person's records may be the person's own data: neither in the tables, nor in Delta's
log, where the statement that deletes names offsets.
"""

import logging
import uuid
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from mirrorlake import failpoints
from mirrorlake.errors import InputError, first_line
from mirrorlake.forget.flows import Flows
from mirrorlake.forget.related_topics import Staged, is_about_content, topics_with_same_records
from mirrorlake.forget.still_needed import FlowPositions, StillNeeded, still_needed
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.forgotten import finish
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.stage_index import StageIndex

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

_NEEDED = "flow string, topic string, partition int, generation int, first bigint, below bigint"


def forget(
    lake: Lake,
    connections: Connections,
    topics: Sequence[str],
    where: str,
    source: str | None = None,
    dry_run: bool = False,
    vacuum_hours: int = 168,
) -> dict[str, Any]:
    """Delete the staged records of some topics that a predicate picks, as far as no flow needs them
    any more.

    Args:
        lake, connections: the lake, and the clusters of its topology file.
        topics: named as at the source.
        where: the predicate, in Spark's SQL, over the columns of `records`.
        source: the alias of the source cluster; None where only one has staged such topics.
        dry_run: only count.
        vacuum_hours: how long `maintain` keeps the files of before.

    Returns:
        {"source", "dry_run", "forget_id", "records", "files", "waiting", "topics": [{topic,
        records, files, waiting}], "waits": [{flow, why}] for the records that are `waiting`,
        "elsewhere": [{source, topic, records}] of the stage that come from the same records and
        that the predicate picks as well (None: it cannot be asked there), "replays": names of those
        whose predicates about these topics are in `changes`, "finished": records of calls before
        that were killed, "deleted_at", "gone_after"}: the first `maintain` behind the latter
        removes the files that still hold them. The last two and the id are None where nothing was
        deleted.

    Raises:
        InputError: the predicate cannot be run, or a topic is not staged.
        LeaseTaken: another process does the same.
    """
    lease = Lease(lake, "forgetting records")
    lease.take()
    try:
        finished = 0 if dry_run else finish(lake)
        stage = StageFiles(lake)
        with stage.reading() as index:
            alias = _source(index, topics, source)
        with ExitStack() as held:
            request = _Request(
                lake, connections, alias, topics=tuple(topics), where=where, dry_run=dry_run
            )
            document = _forget(request, stage, held, finished)
        if document["deleted_at"] is not None:
            document["gone_after"] = document["deleted_at"] + timedelta(hours=vacuum_hours)
        return document
    finally:
        lease.release()


class _Request:
    """What is asked for."""

    def __init__(
        self,
        lake: Lake,
        connections: Connections,
        alias: str,
        topics: tuple[str, ...],
        where: str,
        dry_run: bool,
    ) -> None:
        self.lake, self.alias, self.topics, self.dry_run = lake, alias, topics, dry_run
        self.flows = Flows(lake, connections, alias, topics)
        self._where = where

    def _matching(self, version: int, places: Collection[Staged]) -> "DataFrame":
        """What the predicate picks of some topics at a version of `records`. Raises InputError."""
        reading = self.lake.spark.read.format("delta").option("versionAsOf", str(version))
        from pyspark.errors import (
            AnalysisException,
            ParseException,
        )  # the session is there, so Spark is
        from pyspark.sql import functions as F

        records = reading.table(self.lake.name("records"))
        wanted = F.lit(False)
        for alias in sorted({alias for alias, _ in places}):
            topics = sorted(topic for other, topic in places if other == alias)
            wanted = wanted | ((F.col("source_cluster") == alias) & F.col("topic").isin(topics))
        try:
            matching = (
                records.where(wanted)
                .where(f"(\n{self._where}\n)")
                .select(
                    "source_cluster",
                    "topic",
                    "partition",
                    F.coalesce("generation", F.lit(0)).alias("generation"),
                    "offset",
                    F.col("_metadata.file_path").alias("path"),
                )
            )
            matching.columns  # noqa: B018 - with Spark Connect a query is looked into when this is asked
        except (AnalysisException, ParseException) as error:
            raise InputError(f"the predicate cannot be run: {first_line(error)}") from error
        return matching

    def elsewhere(self, index: StageIndex) -> list[dict[str, Any]]:
        """How many records of other topics of the stage, which come from the same ones, the
        predicate picks as well."""
        mine = [(self.alias, topic) for topic in self.topics]
        rows = self.lake.ask("map_extents")
        mirrors = {(row["flow"], row["topic"], row["target_topic"]) for row in rows}
        aliases = {row["alias"]: row["cluster_id"] for row in self.lake.ask_table("clusters")}
        staged = {(alias, topic) for alias, topic, _, _ in index.parts()}
        places = topics_with_same_records(mine, mirrors, aliases, staged)
        counts: dict[Staged, int | None] = dict.fromkeys(places)
        if places and is_about_content(self._where):
            counted = (
                self._matching(index.version, places)
                .groupBy("source_cluster", "topic")
                .count()
                .collect()
            )
            counts = {(row["source_cluster"], row["topic"]): row["count"] for row in counted}
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

    def picked(self, stood: "_Snapshot") -> "DataFrame":
        """What the predicate picks. Raises InputError."""
        matching = self._matching(
            stood.version, [(self.alias, topic) for topic in self.topics]
        ).drop("source_cluster")
        frame = self.lake.spark.createDataFrame([tuple(needed) for needed in stood.needed], _NEEDED)
        return self.lake.query_over("forget_picked", {"found": matching, "still_needed": frame})

    def counts(self, stood: "_Snapshot") -> list[dict[str, Any]]:
        """How many records may go, and how many have to wait, by topic."""
        rows = self.lake.query_over("forget_counts", {"picked": self.picked(stood)}).collect()
        return [row.asDict() for row in rows]


class _Snapshot(NamedTuple):
    """How it stood at a version of `records`: what of that must stay for flows."""

    version: int
    needed: list[StillNeeded]


def _forget(request: _Request, stage: StageFiles, held: ExitStack, finished: int) -> dict[str, Any]:
    reasons: dict[str, str] = {}
    stood = _snapshot(request, stage, request.flows.by_their_maps())
    counts = request.counts(stood)
    if any(row["waiting"] for row in counts):
        # Only now are flows kept from producing, and targets asked: mostly all is mapped.
        known = request.flows.held(
            dict.fromkeys(needed.flow for needed in stood.needed), held, reasons
        )
        stood = _snapshot(request, stage, known)
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
        frames, names = (
            {"picked": request.picked(stood)},
            {"source_cluster": request.alias, "forget_id": forget_id},
        )
        request.lake.retrying(
            lambda: request.lake.query_over("note_forgotten", frames, **names).collect()
        )
        failpoints.reached("forget-noted")
        finish(request.lake)
        document["deleted_at"] = datetime.now(timezone.utc)
    return document


def _snapshot(request: _Request, stage: StageFiles, flows: Sequence[FlowPositions]) -> _Snapshot:
    with stage.reading() as index:
        staged = {topic: index.topics(request.alias)[topic] for topic in request.topics}
        return _Snapshot(
            index.version, [needed for known in flows for needed in still_needed(known, staged)]
        )


def _waits(waiting: Sequence[StillNeeded], reasons: dict[str, str]) -> list[dict[str, str]]:
    """Which flows records wait for, and why."""
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
