"""A comparison by content: the body of `OpenLake.verify`."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from mirrorlake.errors import InputError
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.stage_sources import readable_by_files
from mirrorlake.library.answers import Rows
from mirrorlake.library.internals import Internals
from mirrorlake.library.replicating import stopping
from mirrorlake.library.verify_answer import Verified
from mirrorlake.produce.probe import files_readable
from mirrorlake.verify.auditor import Auditor
from mirrorlake.verify.outcome import Outcome
from mirrorlake.verify.plan import Choice
from mirrorlake.verify.workers import AuditWorkers, cores_of

#: Up to this many offsets this process compares alone: starting a session takes as long.
SMALL_OFFSETS = 300_000
#: How long `watch` waits between two turns, seconds.
WATCH_SECONDS = 10.0


def verified(
    known: Internals,
    flows: Sequence[str] | None,
    topics: Sequence[str],
    choice: Choice,
    *,
    max_mb_per_s: float | None,
    watch: bool,
    report: Callable[[Verified], None] | None,
    stop: threading.Event | None,
) -> Verified:
    """Compare; returns and raises as documented for `OpenLake.verify`."""
    if max_mb_per_s is not None and max_mb_per_s <= 0:
        raise InputError("the limit of MB/s has to be above 0")
    wanted = known.topology.require_flows(flows)
    began, outcome = datetime.now(timezone.utc), Outcome()
    with stopping(stop) as ending:
        on_outcome = (
            (lambda outcome: report(_answer(began, outcome))) if report else (lambda _found: None)
        )
        auditor = Auditor(
            Deployment.opened(known.writable, known.connections),
            lambda offsets: _workers(known, offsets),
            ending,
            on_outcome,
        )
        limit = None if max_mb_per_s is None else max_mb_per_s * 1e6
        while True:
            for flow in wanted:
                # A flow not reached before `stop` is still visited once, for what is not compared.
                if not ending.is_set() or flow.name not in outcome.held_up:
                    auditor.audit(flow, topics, choice, limit, outcome)
            if not watch or ending.is_set():
                break
            choice = replace(choice, again=False, differing=False)
            ending.wait(WATCH_SECONDS)
        auditor.look_whether_on_the_way(outcome)
    for topic in topics:
        if topic not in outcome.topics:
            raise InputError(
                f"no flow has brought a topic {topic} to its target; name one, and no pattern, as "
                "it is at the source or at the target: `mirrorlake plan` lists them"
            )
    return _answer(began, outcome)


def _workers(known: Internals, offsets: int) -> AuditWorkers:
    """Workers for so many offsets: this process for few, if it can open the stage's files; else
    executors, which read files if they can."""
    if offsets <= SMALL_OFFSETS and known.location.path is not None:
        return AuditWorkers()
    tables = known.tables
    count = cores_of(tables.spark)
    with StageFiles(tables).reading() as index:
        some = next(iter(index.paths()), None)
    by_files = readable_by_files(tables) and (some is None or files_readable(tables.spark, some))
    return AuditWorkers(tables, count, by_rows=not by_files)


def _answer(began: datetime, outcome: Outcome) -> Verified:
    return Verified(
        began=began,
        ended=datetime.now(timezone.utc),
        ranges=outcome.ranges,
        records=outcome.records,
        proven=outcome.proven,
        proven_before=outcome.proven_before,
        bytes_read=outcome.bytes_read,
        excused=dict(sorted(outcome.excused.items())),
        differences=Rows(outcome.differences),
        not_compared=Rows(outcome.not_compared),
        audits=Rows(outcome.rows),
        cut={"ranges": outcome.dropped_ranges, "differences": outcome.unlisted_differences},
    )
