"""Compares flows by content, range by range, noted in `audits`: the next one continues there."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from mirrorlake import failpoints
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ContentDiffers, ReplicationError
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.rising_times import time_behind
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.ranges import Extent
from mirrorlake.produce.encoding import Hops
from mirrorlake.run.flow_spec import provenance_of
from mirrorlake.run.other_process import run_by_other_process
from mirrorlake.verify.compaction import to_look_up, with_last_of_key
from mirrorlake.verify.coverage import find_not_compared, find_strangers
from mirrorlake.verify.in_flight import not_on_the_way
from mirrorlake.verify.job import Clusters, Compared, Range
from mirrorlake.verify.not_compared import INTERRUPTED, NotCompared, on_its_way
from mirrorlake.verify.outcome import Outcome
from mirrorlake.verify.partition_scope import PartitionScope
from mirrorlake.verify.plan import Choice, Chosen, choose, ranges_of, waves
from mirrorlake.verify.scope import FlowScope
from mirrorlake.verify.targets import compared_targets, losses_of
from mirrorlake.verify.workers import AuditWorkers

logger = logging.getLogger(__name__)

#: Ranges that are planned, compared and noted together: the most that a kill costs.
WAVE_RANGES = 32
#: How often the files of ranges are looked up again after compaction replaced some.
_ATTEMPTS = 3
_AT_TARGET = ("target_topic", "target_generation")


class Auditor:
    """Compares what a lake's flows have replicated."""

    def __init__(
        self,
        deployment: Deployment,
        workers: Callable[[int], AuditWorkers],
        stop: threading.Event,
        report: Callable[[Outcome], None] = lambda _outcome: None,
    ) -> None:
        """`workers` gives the workers for so many offsets; `report` is called after each wave;
        `stop` ends the comparison there."""
        deployment.lake.check_for_writing()
        self._deployment, self._lake = deployment, deployment.lake
        self._workers = workers
        self._stop = stop
        self._report = report
        self._stage = StageFiles(deployment.lake.reader)

    def audit(
        self,
        flow: ResolvedFlow,
        topics: Sequence[str],
        choice: Choice,
        bytes_per_s: float | None,
        outcome: Outcome,
    ) -> None:
        """Compare a flow, as far as it is chosen and not proven yet, note the verdicts, and add
        them to an outcome. `topics` are the source's or the target's, or empty for all.
        `bytes_per_s` limits the reading from each cluster.

        Raises ClusterUnusable for a cluster that cannot be read; verdicts before that stay noted.
        """

        def wanted(row: Mapping[str, Any]) -> bool:
            return not topics or row["topic"] in topics or row["target_topic"] in topics

        targets = compared_targets(flow, self._deployment, wanted)
        outcome.add_unranged(targets.gone)

        def living(row: Mapping[str, Any]) -> bool:
            return row["topic"] not in targets.closed and wanted(row)

        scope = FlowScope(flow, self._deployment, living)
        with self._stage.reading() as index:
            partitions = scope.partitions(index)
            chosen = choose(scope, partitions, choice)
            held, free = find_not_compared(scope, partitions, index, choice.bounds)
            outcome.add_unranged(find_strangers(scope, index))
        for partition in partitions:
            outcome.topics |= {partition.topic, partition.target_topic}
        seen = {*scope.selected, *(stretch.topic for stretch in targets.not_compared)}
        outcome.topics |= {*seen, *map(flow.target_topic, seen)}
        outcome.note_proven_before(flow.name, _proven_before(partitions, chosen))
        held += targets.not_compared
        outcome.held_up[flow.name], outcome.on_the_way[flow.name] = held, free
        left = self._compare_all(scope, chosen, bytes_per_s, outcome)
        held += [
            NotCompared(*one.key, one.generation, *at, INTERRUPTED)
            for one, extents in left
            for at in extents
        ]
        self._settle(flow.name, targets.closed)

    def _compare_all(
        self,
        scope: FlowScope,
        chosen: Sequence[Chosen],
        bytes_per_s: float | None,
        outcome: Outcome,
    ) -> list[tuple[PartitionScope, list[Extent]]]:
        """Compare wave after wave; return what was left when it was stopped (everything, if that
        was before the first wave), and ranges that the target lost records of meanwhile."""
        lost: list[tuple[PartitionScope, list[Extent]]] = []
        if self._stop.is_set():
            return [(one.scope, one.extents) for one in chosen]
        extents = [extent for one in chosen for extent in one.extents]
        workers = self._workers(sum(last - first + 1 for first, last in extents))
        rest = waves(chosen, max(WAVE_RANGES, 4 * workers.tasks))
        for wave in rest:
            # new for each wave: credentials may have changed
            clusters = self._clusters(scope.flow, bytes_per_s)
            lost += self._compare(scope, wave, clusters, workers, outcome)
            self._report(outcome)
            if self._stop.is_set():
                break
        return lost + [(one.scope, one.extents) for wave in rest for one in wave]

    def look_whether_on_the_way(self, outcome: Outcome) -> None:
        """Find out whether records that nothing holds up are on their way now: whether a process
        runs the flow and brings them. That takes as long as a running flow's sample, and nothing if
        all was compared."""
        topology = self._deployment.connections.topology
        for flow, waiting in outcome.on_the_way.items():
            runs = bool(waiting) and run_by_other_process(self._lake, [flow]) is not None
            stuck = topology.objectives_of(flow)["stuck_seconds"]
            held = not_on_the_way(self._lake, flow, waiting, stuck) if runs else {}
            outcome.held_up[flow] += [on_its_way(one, runs, held.get(one)) for one in waiting]
        outcome.on_the_way.clear()

    def _clusters(self, flow: ResolvedFlow, bytes_per_s: float | None) -> Clusters:
        source, target = (
            self._deployment.connections.client(alias, "consumer")
            for alias in (flow.source, flow.target)
        )
        hops, place = provenance_of(flow, self._deployment), self._deployment.lake.directory
        marks = None if hops is None else Hops(hops.source_id, hops.target_id)
        return Clusters(
            flow.source,
            flow.target,
            source_settings=source,
            target_settings=target,
            bytes_per_s=bytes_per_s,
            hops=marks,
            storage=None if place is None else place.options,
        )

    def _compare(
        self,
        scope: FlowScope,
        wave: list[Chosen],
        clusters: Clusters,
        workers: AuditWorkers,
        outcome: Outcome,
    ) -> list[tuple[PartitionScope, list[Extent]]]:
        """Compare some ranges and note them in one commit, with the time of its beginning: what the
        target loses meanwhile may have been read before. Returns ranges that are not noted: by a
        clock that is ahead, their rows would be newer than a loss, or the decision about it."""
        began, before = time_behind(scope.audited_at), losses_of(self._lake, scope.flow.name)
        done: list[tuple[Range, Compared]] = []
        for attempt in range(_ATTEMPTS):
            with self._stage.reading() as index:
                ranges = ranges_of(scope, index, wave)
            known = {(range_.place, range_.first) for range_, _ in done}
            left = [range_ for range_ in ranges if (range_.place, range_.first) not in known]
            pairs = self._compared(scope, wave, left, clusters, workers)
            done += [pair for pair in pairs if not pair[1].stale]
            if len(done) == len(ranges):
                break
            logger.info("files of the stage were compacted meanwhile; attempt %d", attempt + 2)
            self._stage.forget()
        else:
            raise ReplicationError(
                "files of the stage go on being replaced while they are read; run verify again"
            )
        news = losses_of(self._lake, scope.flow.name) - before
        late = [loss for loss in news if loss.at < began]
        lost = [range_ for range_, _ in done if any(loss.is_in(range_) for loss in late)]
        done = [pair for pair in done if pair[0] not in lost]
        rows = [_row(scope.flow.name, compared, result, began) for compared, result in done]
        failpoints.reached("compared")
        self._lake.append("audits", rows_of("audits", rows))
        failpoints.reached("audited")
        for row, (_, result) in zip(rows, done, strict=True):
            outcome.add(row, result.verdict.excused)
        self._tell(scope.flow.name, rows)
        scopes = {one.scope.key: one.scope for one in wave}
        return [(scopes[one.place.topic_partition], [(one.first, one.last)]) for one in lost]

    def _compared(
        self,
        scope: FlowScope,
        wave: Iterable[Chosen],
        ranges: Sequence[Range],
        clusters: Clusters,
        workers: AuditWorkers,
    ) -> list[tuple[Range, Compared]]:
        """Compare, and compare again where compaction may explain missing records, now with the
        records that it has to leave."""
        pairs = list(zip(ranges, workers.compare(clusters, ranges), strict=True))
        doubtful = [range_ for range_, result in pairs if to_look_up(range_, result)]
        if not doubtful:
            return pairs
        scopes = {one.scope.key: one.scope for one in wave}
        with_last = with_last_of_key(
            self._lake, scope.flow, doubtful, scopes, time.time_ns() // 1_000_000
        )
        again = iter(zip(with_last, workers.compare(clusters, with_last), strict=True))
        return [next(again) if to_look_up(*pair) else pair for pair in pairs]

    def _tell(self, flow: str, rows: Iterable[dict[str, Any]]) -> None:
        """Open an incident for each partition's first difference that was not acknowledged."""
        names = (*PartitionGeneration._fields, *_AT_TARGET, "first_offset", "last_offset")
        known = {
            tuple(0 if row[name] is None else row[name] for name in names)
            for row in self._lake.ask("mirror_incidents", flow=flow)
            if (row["kind"], row["resolution"]) == (ContentDiffers.incident_kind, "acknowledge")
        }
        news: dict[PartitionGeneration, ContentDiffers] = {}
        for place, error in _errors(rows):
            if tuple(getattr(error, name) for name in names) not in known:
                news.setdefault(place, error)
        if news:
            Incidents(self._lake).open_all(flow, ContentDiffers.incident_kind, news.values())

    def _settle(self, flow: str, closed: Collection[str]) -> None:
        """Close incidents of living partitions without a difference; `closed` were not compared."""
        rows = self._lake.ask("proven_ranges", flow=flow)
        places = [PartitionGeneration.from_row(row) for row in rows]
        living = {place.topic_partition: place for place in sorted(places)}
        differing = {
            place
            for row, place in zip(rows, places, strict=True)
            if not row["proven"] and living[place.topic_partition] == place
        }
        Incidents(self._lake).close(
            lambda key: (
                key[:2] == (flow, ContentDiffers.incident_kind)
                and (key.topic, key.partition, key.generation) not in differing
                and key.topic not in closed
            )
        )


def _errors(
    rows: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[PartitionGeneration, ContentDiffers]]:
    """The differences of rows of `audits`, as errors, each with the partition that it is of."""
    for row in rows:
        place = PartitionGeneration.from_row(row)
        for difference in row["differences"]:
            detail = f" ({difference['detail']})" if difference["detail"] else ""
            message = (
                f"{row['topic']}-{row['partition']}, offsets {difference['first_offset']} to "
                f"{difference['last_offset']}: {difference['kind']}{detail}; the range "
                f"{row['first_offset']} to {row['last_offset']} is not proven (docs/trust.md)"
            )
            at = {name: difference[name] for name in ("first_offset", "last_offset")}
            at |= {name: row[name] for name in _AT_TARGET}
            yield place, ContentDiffers(message, **place._asdict(), **at)


def _proven_before(partitions: Iterable[Any], chosen: Sequence[Chosen]) -> int:
    anew = {chosen_partition.scope.key: chosen_partition.extents for chosen_partition in chosen}
    return sum(
        one.record_count
        for partition in partitions
        for one in partition.audited
        if one.proven
        and not any(
            a <= one.extent[1] and one.extent[0] <= b for a, b in anew.get(partition.key, ())
        )
    )


def _row(flow: str, range_: Range, compared: Compared, began: datetime) -> dict[str, Any]:
    """A row of `audits`."""
    sides = ("source", "stage", "target")
    return {
        "flow": flow,
        "topic": range_.topic,
        "partition": range_.partition,
        "first_offset": range_.first,
        "last_offset": range_.last,
        **{f"{side}_count": count for side, count in zip(sides, compared.counts, strict=True)},
        **{f"{side}_hash": digest for side, digest in zip(sides, compared.digests, strict=True)},
        "verdict": compared.verdict.word,
        "audited_at": began,
        "generation": range_.generation,
        "target_topic": range_.target_topic,
        "target_generation": range_.target_generation,
        "target_first_offset": range_.target_first,
        "target_last_offset": range_.target_end - 1,
        "byte_count": compared.bytes_read,
        "untold_differences": compared.unlisted,
        "excused": list(compared.verdict.excused.items()),
        "only_mapped": compared.verdict.only_mapped,
        "differences": [
            {
                "kind": one.kind,
                "first_offset": one.first,
                "last_offset": one.last,
                "record_count": one.count,
                "target_offset": one.target_offset,
                "detail": one.detail,
            }
            for one in compared.verdict.differences
        ],
    }
