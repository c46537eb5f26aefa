"""Partitions of a flow that wait for an operator, because records were refused, lost or
contradicted: reporting them, and following up decisions."""

import logging
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace

from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.errors import (
    MapBehind,
    MapUnknown,
    MirrorlakeError,
    TargetLost,
    TargetRefused,
    TopicRefused,
)
from mirrorlake.lake.decisions import PARK, Decided, Lost
from mirrorlake.lake.incidents import WENT_ON, Incident, IncidentKey, Incidents, WaitingPartition
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.run.snapshot import Snapshot
from mirrorlake.run.stage_holes import holes_before
from mirrorlake.run.target_losses import (
    AskEnds,
    Losses,
    MappedLoss,
    ResentExtent,
    log_ends_below,
    loss_errors,
    resent_to,
    take_back,
    take_out,
)

logger = logging.getLogger(__name__)

#: Kinds of incident that close once the flow has come behind their offsets.
_GO_ON = tuple(kind.incident_kind for kind in (TargetRefused, MapBehind, MapUnknown))


class StoppedPartitions:
    """The stopped partitions of one flow. The flow's thread finds them, the control thread asks for
    decisions.

    `begin_anew` restarts the flow, which then tries refused records again; `limits` gives what
    decides which records target topics accept.
    """

    def __init__(
        self,
        flow: str,
        lake: Lake,
        targets: TargetTopics,
        *,
        incidents: Incidents,
        begin_anew: Callable[[], None],
        limits: Callable[[Collection[str]], Mapping[str, Hashable]],
    ) -> None:
        self._flow = flow
        self._lake = lake
        self._targets = targets
        self._incidents = incidents
        self._begin_anew = begin_anew
        self._limits = limits
        #: The limits before a partition was last tried, as far as they are known.
        self._tried_with: dict[TopicAndPartition, Hashable] = {}
        #: The error of each stopped partition; and the decided ones: the flow has to begin anew.
        self._here: dict[TopicAndPartition, MirrorlakeError] = {}
        self._decided: set[TopicAndPartition] = set()
        self._noted: MirrorlakeError | None = None
        self._producer: FlowProducer | None = None
        self._behind: frozenset[PartitionGeneration] = frozenset()
        # an earlier process may have stopped others, until the incidents have been checked
        self._before = True

    @property
    def error(self) -> MirrorlakeError | None:
        """The first error that stands; a decided one stands until the flow begins anew."""
        return next(iter([*self._here.values()]), self._noted)

    def note(self, error: MirrorlakeError | None) -> None:
        """Note an error of another kind, if it is one; only the first is kept."""
        self._noted = self._noted or error

    def begin(self) -> None:
        """Drop the decided partitions: the flow begins anew, by these decisions."""
        for key in [*self._decided]:
            self._decided.discard(key)
            self._here.pop(key, None)

    def stop_before_holes(
        self, producer: FlowProducer, stage: StageFiles, decided: Decided
    ) -> None:
        """Leave out partitions which lost staged records that this flow lacks, until decided."""
        holes = holes_before(self._lake, stage, producer, decided.accepted_holes())
        if holes:
            problem = next(iter(holes.values()))
            logger.error("%s (%d partitions in all)", problem, len(holes))
            self._incidents.open_all(self._flow, problem.incident_kind, list(holes.values()))
            self._here |= holes
            producer.spec = replace(producer.spec, blocked=producer.spec.blocked | holes.keys())

    def refused(self, refusals: Sequence[TargetRefused]) -> None:
        """Stop the partitions of `refusals`, while the others go on; an incident for each names the
        offsets (DESIGN.md, "Nothing silently")."""
        for refusal in refusals:
            logger.error("%s", refusal)
        self._targets.check()
        closed = self._targets.closed()
        if any(refusal.topic in closed for refusal in refusals):
            self._begin_anew()  # the topic is gone or another one: an incident of its own
        fresh = [refusal for refusal in refusals if refusal.topic not in closed]
        lost = [refusal for refusal in fresh if isinstance(refusal, TargetLost)]
        if denied := [refusal for refusal in fresh if isinstance(refusal, TopicRefused)]:
            self._targets.deny(denied)
            self._begin_anew()
        others = [
            refusal for refusal in fresh if not isinstance(refusal, TargetLost | TopicRefused)
        ]
        self._report(others)
        if lost:
            self._lost_under_way(lost)

    def parked(self, places: Sequence[PartitionGeneration]) -> None:
        """Settle the open refusals of partitions that now go on behind refused records: those of
        the mirrors that the flow has now."""
        parked, kind = frozenset(places), TargetRefused.incident_kind
        over = [
            refusal
            for refusal, is_of_now in self._waiting()
            if is_of_now and refusal.key.kind == kind and refusal.place in parked
        ]
        self._incidents.settle_all((refusal.key for refusal in over), PARK)
        for refusal in over:
            self._here.pop(refusal.place.topic_partition, None)

    def stop_where_lost(self, producer: FlowProducer, ends: AskEnds, decided: Decided) -> bool:
        """Leave out partitions of which the target has lost acknowledged records, until an operator
        has decided. Returns whether the map was cut for them: the flow has to begin anew."""
        self._producer = producer
        # before the ends are asked for: what is sent meanwhile must not count as lost
        resent = resent_to(self._lake, self._flow)
        losses = log_ends_below(producer, ends, resent)
        if losses.keys() - decided.lost.keys():
            self._targets.check()  # a topic that was made again has an incident of its own
        closed = self._targets.closed()
        news = {
            key: loss
            for key, loss in losses.items()
            if key not in decided.lost and key[0] not in closed
        }
        named = self._named({key: (loss, None) for key, loss in news.items()})
        for problem in self._report_lost(named, resent):
            logger.error("%s", problem)
        lost = {key: loss for key, loss in decided.lost.items() if key[0] not in closed} | news
        before = self._named({key: (lost[key], None) for key in lost.keys() - self._here.keys()})
        for problem in loss_errors(self._lake, self._flow, before):
            self._here[problem.topic_partition] = problem
        producer.spec = replace(producer.spec, blocked=producer.spec.blocked | lost.keys())
        return take_out(self._lake, producer, lost)

    def _named(
        self, losses: Mapping[TopicAndPartition, tuple[Lost, tuple[int, int] | None]]
    ) -> Losses:
        """Losses with target topics, and what was written last where the map may lack it."""
        return {
            key: MappedLoss(self._targets.remote_topic(key[0]) or key[0], *loss)
            for key, loss in losses.items()
        }

    def _report_lost(self, losses: Losses, resent: Sequence[ResentExtent]) -> list[TargetLost]:
        problems = loss_errors(self._lake, self._flow, losses)
        take_back(self._lake, self._flow, losses, resent)
        self._report(problems)
        return problems

    def _lost_under_way(self, refusals: Sequence[TargetLost]) -> None:
        """Handle records that got offsets below the map's end in topics that are still the same:
        the flow begins anew, and cuts what is lost out of the map."""
        producer = self._producer
        assert producer is not None
        try:
            producer.drain()  # so that the map has all written records
        finally:
            losses, floors = {}, producer.floors()
            for refusal in refusals:
                key, first = refusal.topic_partition, refusal.first_offset
                lost = Lost(floors[key].target_generation, refusal.target_offset)
                last = None if first is None else (refusal.generation or 0, first - 1)
                losses[key] = (lost, last)
            self._report_lost(self._named(losses), resent_to(self._lake, self._flow))
        self._begin_anew()

    def _report(self, problems: Sequence[TargetRefused]) -> None:
        self._incidents.report(
            Incident(self._flow, problem.incident_kind, problem) for problem in problems
        )
        # Only now: the other thread would take a problem without an incident for a decided one.
        self._here |= {problem.topic_partition: problem for problem in problems}

    def report_behind(self, partitions: Sequence[MapBehind]) -> None:
        """Report partitions that wait until the stage has what the target took."""
        if partitions:
            logger.warning("%s (%d partitions in all)", partitions[0], len(partitions))
            self._report(partitions)

    def check(self, snapshot: Snapshot | None) -> None:
        """Close incidents of refused records that the target has taken by a poll, and go on where
        an operator decided so. Report partitions whose map is behind at a second check in a row."""
        behind = {} if snapshot is None else snapshot.behind
        self.report_behind([one for place, one in behind.items() if place in self._behind])
        self._behind = frozenset(behind)
        if not (self._here or self._before):
            return  # no other code opens incidents for this flow
        waiting, went_on = self._waiting(), False
        taken = {
            refusal.key
            for refusal, _ in waiting
            if refusal.key.kind in _GO_ON
            and snapshot is not None
            and snapshot.is_behind(refusal.place, refusal.last_offset)
        }
        if snapshot is not None and taken:
            went_on = self._close_taken(taken, snapshot)
            waiting = self._waiting()
        self._before = bool(waiting)
        here = [refusal for refusal, is_of_now in waiting if is_of_now]
        over = {*self._here} - {refusal.place.topic_partition for refusal in here}
        if over or went_on:
            self._decided |= over
            self._begin_anew()
            return
        self._try_again(
            {
                refusal.place.topic_partition
                for refusal in here
                if refusal.key.kind == TargetRefused.incident_kind
            }
            & self._here.keys()
        )

    def _waiting(self) -> list[tuple[WaitingPartition, bool]]:
        """What waits for a decision about the target topics that the flow has now, and whether it
        is about their generations of now. What one refused that was made again since is over once
        the flow is behind it; what is about other names waits until the flow has these again."""
        refused = self._incidents.refused(self._flow)
        topics = {one.place.topic for one in refused}
        mirrors = {topic: self._targets.mirror(topic) for topic in topics}
        waiting = list[tuple[WaitingPartition, bool]]()
        for one in refused:
            mirror, about = mirrors[one.place.topic], one.about._asdict()
            if mirror._replace(generation=None).is_of(about):
                waiting.append((one, mirror.is_of(about)))
        return waiting

    def _close_taken(self, taken: Collection[IncidentKey], snapshot: Snapshot) -> bool:
        """Close incidents of records that the flow has passed; returns whether a stopped partition
        went on. One that has stopped again, at later records, gets an incident of its own: while
        the other one was open, it stood for both."""
        self._incidents.settle_all(taken, WENT_ON)
        went_on, again = list[TargetRefused](), list[TargetRefused]()
        for problem in [*self._here.values()]:
            key = Incident(self._flow, problem.incident_kind, problem).key
            if key in taken and isinstance(problem, TargetRefused):
                place = PartitionGeneration(*problem.topic_partition, key.generation)
                passed = snapshot.is_behind(place, problem.last_offset or 0)
                (went_on if passed else again).append(problem)
        self._report(again)
        for problem in went_on:
            self._here.pop(problem.topic_partition, None)
        return bool(went_on)

    def _try_again(self, refused: Collection[TopicAndPartition]) -> None:
        """Let the flow try refused records again if their target topics' limits have changed since
        they were last known, or were unknown: they may have changed beside the refused try."""
        names = {
            key: name for key in refused if (name := self._targets.remote_topic(key[0])) is not None
        }
        limits = self._limits(set(names.values())) if names else {}
        now = {key: limits[name] for key, name in names.items() if name in limits}
        changed = [
            key
            for key, limit in now.items()
            if key not in self._tried_with or self._tried_with[key] != limit
        ]
        self._tried_with = now
        if changed:
            some = ", ".join(f"{topic}-{partition}" for topic, partition in sorted(changed)[:8])
            logger.info("flow %s: trying again what the target refused of %s", self._flow, some)
            self._begin_anew()
