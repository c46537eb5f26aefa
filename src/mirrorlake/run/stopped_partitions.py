"""Partitions of a flow that wait for an operator: what was refused, lost or contradicted, reported and followed up."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.errors import MapError, MirrorlakeError, TargetRecreated, TargetRefused
from mirrorlake.lake.incidents import PARK, WENT_ON, Decided, Incident, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.produce.trimmed import holes_before
from mirrorlake.run.snapshot import Snapshot

logger = logging.getLogger(__name__)


class StoppedPartitions:
    """The stopped partitions of one flow. The flow's thread finds them, the control's asks what was decided.

    `error` is the first of them that is not decided yet, or None. `begin_anew` restarts the flow.
    """

    def __init__(
        self, flow: str, lake: Lake, targets: TargetTopics, incidents: Incidents, begin_anew: Callable[[], None]
    ) -> None:
        self.error: MirrorlakeError | None = None
        self._flow = flow
        self._lake = lake
        self._targets = targets
        self._incidents = incidents
        self._begin_anew = begin_anew
        self._here: set[TopicAndPartition] = set()
        self._before = True  # others were stopped by an earlier process, as far as is known until it was checked

    def note(self, error: MirrorlakeError | None) -> None:
        """Something stands; the first of such is what the flow ends with."""
        self.error = self.error or error

    def stop_before_holes(self, producer: FlowProducer, stage: StageFiles, decided: Decided) -> None:
        """Leave out partitions of which the stage has lost what this flow lacks, until an operator has decided."""
        found = holes_before(self._lake, stage, producer, decided.trimmed)
        news = {key: problem for key, problem in found.items() if key not in decided.stopped}
        if news:
            problem = next(iter(news.values()))
            logger.error("%s (%d partitions in all)", problem, len(news))
            self.note(problem)
            self._here |= news.keys()
            self._incidents.tell_all(self._flow, problem.incident_kind, list(news.values()))
            producer.spec = replace(producer.spec, blocked=producer.spec.blocked | news.keys())

    def refused(self, refusals: Sequence[TargetRefused]) -> None:
        """Partitions stop, the others go on; a row of each in `incidents` says what and which offsets (DESIGN.md,
        "Nothing silently")."""
        for refusal in refusals:
            logger.error("%s", refusal)
        self._targets.check()
        closed = self._targets.closed()
        if any(refusal.topic in closed for refusal in refusals):
            self._begin_anew()  # the topic is gone or another one; that has an incident of its own
        found = [refusal for refusal in refusals if refusal.topic not in closed]
        self._here |= {item.topic_partition for item in found if not isinstance(item, TargetRecreated)}
        problems = [_contradicted(item) if isinstance(item, TargetRecreated) else item for item in found]
        self.note(problems[0] if problems else None)
        self._incidents.report(Incident(self._flow, problem.incident_kind, problem) for problem in problems)

    def parked(self, keys: Sequence[TopicAndPartition]) -> None:
        """Partitions go on behind refused records: what was told of them before, if anything, is decided."""
        kind = TargetRefused.incident_kind
        open_ones = {(item.topic, item.partition) for item in self._incidents.refused(self._flow) if item.kind == kind}
        self._incidents.settle_all(((self._flow, kind, *key) for key in open_ones.intersection(keys)), PARK)

    def check(self, snapshot: Snapshot | None) -> None:
        """Close incidents of refused records that were taken since, as of a poll, and go on where an operator said
        so."""
        if not (self._here or self._before):
            return  # nobody else records them
        waiting = self._incidents.refused(self._flow)
        self._before = bool(waiting)
        taken = [
            (self._flow, kind, topic, partition)
            for kind, topic, partition, last in waiting
            if kind == TargetRefused.incident_kind
            and snapshot is not None
            and snapshot.floors.get((topic, partition), 0) > last
        ]
        self._incidents.settle_all(taken, WENT_ON)
        if self._here - {(item.topic, item.partition) for item in waiting}:
            self._here.clear()
            self.error = None
            self._begin_anew()


def _contradicted(refusal: TargetRecreated) -> MapError:
    """Offsets below the map's end in the topic that was noted: it has fewer records than it had."""
    return MapError(
        f"{refusal.message}; its id is the one that it was, so the target has lost records of it",
        topic=refusal.topic,
        partition=refusal.partition,
        first_offset=refusal.first_offset,
        last_offset=refusal.last_offset,
    )
