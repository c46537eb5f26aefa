"""The generations of one flow's target topics: noted before a write, watched by Kafka's ids.

A target topic that is gone or was made again gets no record, and is not made again, until an
operator has decided (`run/resolve.py`). A decision takes effect with `begin`, which only the flow's
own thread calls for topics written to, so no earlier batch is in flight.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from mirrorlake.attempts import attempts
from mirrorlake.control.target_comparison import TargetComparison, TargetLoss, compare_targets
from mirrorlake.control.target_lost import target_lost
from mirrorlake.errors import TargetRecreated, TargetRefused
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicIdentity
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.targets import (
    close_unfounded,
    mapped_targets,
    note_targets,
    noted_targets,
    target_decisions,
)
from mirrorlake.offsets.generations import NotedTarget, TargetDecision, TargetGeneration, newest_of

logger = logging.getLogger(__name__)

#: How long a topic must be unknown to its cluster to count as gone, and how long a new one may be
#: unknown, seconds: a broker learns of topics somewhat later than the controller. For thousands of
#: topics that takes minutes, so each topic that becomes known restarts the time for the others.
GONE_SECONDS = 3.0
MADE_SECONDS = 15.0
_PAUSE_SECONDS = 0.25


class TargetGenerations:
    """What a flow knows of its target topics. Not thread-safe (`TargetTopics` locks).

    By target topic, `living` has the generations that may be written to. By source topic, `waiting`
    has what an operator must decide, `stopped` the topics that one has stopped, and `decided` those
    whose next generation is to begin.
    """

    def __init__(self, lake: Lake, flow: str, target: ClusterAdmin, incidents: Incidents) -> None:
        self.living: dict[str, TargetGeneration] = {}
        self.waiting: dict[str, TargetRecreated] = {}
        self.stopped: frozenset[str] = frozenset()
        self.decided: frozenset[str] = frozenset()
        self._lake = lake
        self._flow = flow
        self._target = target
        self._incidents = incidents
        self._noted: dict[str, list[NotedTarget]] | None = None
        self._names: dict[str, str] = {}
        self._targets: frozenset[str] | None = None
        self._decisions: list[TargetDecision] | None = None
        self._begun_here: set[str] = set()
        self._never_mapped: set[str] = set()
        self._leaderless: set[str] = set()  # target topics whose ends were waited for in vain

    def names(self) -> dict[str, str]:
        """The target topics that were noted, by source topic."""
        self._load()
        return dict(self._names)

    def targets(self) -> frozenset[str]:
        """The target topics of `names`."""
        if self._targets is None:
            self._load()
            self._targets = frozenset(self._names.values())
        return self._targets

    def partitions(self, target: str) -> int:
        """How many partitions a target topic had when it was noted last."""
        return len(self._load()[target][-1].began)

    def newest(self, topic: str) -> int:
        """The newest noted generation of a source topic's target topic; 0 if there is none."""
        noted = self._load().get(self._names.get(topic, ""))
        return noted[-1].number if noted else 0

    def comparison(self, names: Mapping[str, str]) -> TargetComparison:
        """Compare topics, by source topic, with the noted ones by a query; report new losses.

        Raises ClusterUnreachable, KafkaException.
        """
        noted = self._load()
        self._note_previous(
            {topic: target for topic, target in names.items() if target not in noted}
        )
        asked = sorted({target for target in names.values() if target in noted})
        identities, missing = self._target.identities(asked)
        comparison = self._compared(names, identities, missing)
        gone = {loss.target_topic for loss in comparison.losses if not loss.made_again}
        if gone:
            confirmed, still = until_known(self._target, gone, GONE_SECONDS)
            comparison = self._compared(
                names, {**identities, **confirmed}, (missing - gone) | still
            )
        unfounded = [
            (topic, names[topic], comparison.living[topic].number) for topic in comparison.unfounded
        ]
        if unfounded:
            close_unfounded(self._lake, self._flow, unfounded)
            self._decisions = None  # else each comparison would close them again
        self._apply(names, comparison)
        return comparison

    def begin(
        self, comparison: TargetComparison, names: Mapping[str, str]
    ) -> dict[str, TargetRefused]:
        """Note the generations that a comparison wants to begin, as far as `names` has their target
        topics (by source topic), which have been made.

        Returns what could not be noted, by source topic: nothing may be written there.
        """
        names = {topic: target for topic, target in names.items() if topic in comparison.begin}
        if not names:
            return {}
        identities, _ = until_known(self._target, set(names.values()), MADE_SECONDS)
        known = identities.keys() & names.values()
        ends = self._ends({target: identities[target].partitions for target in known})
        begun = {
            (topic, target): NotedTarget(
                comparison.begin[topic][0],
                identities[target].topic_id,
                comparison.begin[topic][1],
                ends[target],
            )
            for topic, target in names.items()
            if target in ends
        }
        self._note(begun)
        return {
            topic: self._leader_silent(topic, target)
            if target in known
            else self._id_unreported(topic, target)
            for topic, target in names.items()
            if target not in ends
        }

    def _load(self) -> dict[str, list[NotedTarget]]:
        if self._noted is None:
            self._noted, self._names = noted_targets(self._lake, self._flow)
        return self._noted

    def _compared(
        self,
        names: Mapping[str, str],
        identities: Mapping[str, TopicIdentity],
        missing: Collection[str],
    ) -> TargetComparison:
        ids = {target: topic.topic_id for target, topic in identities.items()}
        noted = {target: items[-1] for target, items in self._load().items()}
        known = noted.keys() & names.values()
        same = all(ids.get(target) in (None, noted[target].topic_id) for target in known)
        if noted and (
            self._decisions is None or not same or missing or self.waiting or self.stopped
        ):
            self._decisions = target_decisions(self._lake, self._flow)
        return compare_targets(names, ids, missing, noted, self._decisions or [])

    def _apply(self, names: Mapping[str, str], comparison: TargetComparison) -> None:
        """Remember what may be written to, and report what operators have to decide."""
        for topic in (
            comparison.waiting | comparison.stopped | comparison.begin.keys()
        ) & names.keys():
            self.living.pop(names[topic], None)
        for topic in comparison.living:
            self._begin_living(names[topic])
        self._report_losses(comparison.losses)
        self.waiting = {
            topic: self.waiting.get(topic) or self._reminder(topic, names[topic])
            for topic in sorted(comparison.waiting)
        }
        self.stopped, self.decided = comparison.stopped, comparison.decided

    def _begin_living(self, target: str) -> None:
        newest = newest_of(self._load()[target])
        # A process that noted a generation itself knows that no other one wrote there for the flow.
        began = () if target in self._begun_here else newest.began
        self.living[target] = replace(newest, began=began)

    def _note(self, begun: Mapping[tuple[str, str], NotedTarget]) -> None:
        noted = self._load()
        note_targets(self._lake, self._flow, begun)
        self._targets = None
        self.decided -= {topic for topic, _ in begun}
        for (topic, target), generation in begun.items():
            noted.setdefault(target, []).append(generation)
            self._names[topic] = target
            self._begun_here.add(target)
            if generation.topic_id:
                self._begin_living(target)
            if generation.number:
                logger.warning(
                    "flow %s: generation %d of %s begins", self._flow, generation.number, target
                )

    def _note_previous(self, names: Mapping[str, str]) -> None:
        """Note target topics that an earlier version wrote to and that now have less than the map
        says. They get the empty id, which no topic has, so they count as made again. Of the other
        topics only what is there now is known."""
        unknown = {
            topic: target for topic, target in names.items() if topic not in self._never_mapped
        }
        if not unknown:
            return
        mapped = mapped_targets(self._lake, self._flow, unknown.keys())
        written = {topic: target for topic, target in unknown.items() if target in mapped}
        self._never_mapped |= unknown.keys() - written.keys()
        if not written:
            return
        identities, missing = self._target.identities(sorted(written.values()))
        ends = self._ends({target: topic.partitions for target, topic in identities.items()})
        lost = {
            (topic, target): NotedTarget(0, "")
            for topic, target in written.items()
            if (target in missing or target in ends)  # the others are unknown
            and any(
                mapped_target.end > _end(ends.get(target, ()), mapped_target.partition)
                for mapped_target in mapped[target]
            )
        }
        self._note(lost)

    def _ends(self, partitions: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """The log ends of topics. Topics with a silent leader are queried again while other topics'
        ends keep arriving, and then left out; not again if left out before."""
        ends: dict[str, tuple[int, ...]] = {}
        left = set(partitions)
        for last in attempts(MADE_SECONDS, _PAUSE_SECONDS, ends):
            keys = [(topic, n) for topic in left for n in range(partitions[topic])]
            known = self._target.end_offsets(keys, committed=False, skip_silent=True)
            for topic in left:
                places = [(topic, n) for n in range(partitions[topic])]
                of_topic = [known[place] for place in places if place in known]
                if len(of_topic) == partitions[topic]:
                    ends[topic] = tuple(of_topic)
            left = partitions.keys() - ends.keys()
            if last or not left - self._leaderless:
                break
        self._leaderless = (self._leaderless | left) - ends.keys()
        return ends

    def _report_losses(self, losses: Sequence[TargetLoss]) -> None:
        mapped = mapped_targets(self._lake, self._flow, {loss.topic for loss in losses})
        problems = []
        for loss in losses:
            about = (loss.topic, loss.generation)
            known = mapped.get(loss.target_topic, [])
            parts = [part for part in known if (part.topic, part.generation) == about]
            problems.append(target_lost(self._flow, self._target.alias, loss, parts))
        for problem in problems:
            logger.error("%s", problem)
        self._incidents.open_all(self._flow, "target_recreated", problems)
        self.waiting |= {
            loss.topic: problem for loss, problem in zip(losses, problems, strict=True)
        }

    def _reminder(self, topic: str, target: str) -> TargetRecreated:
        return TargetRecreated(
            f"flow {self._flow} waits until you decide about topic {topic}: {target} at cluster "
            f"{self._target.alias} is not the topic that it wrote to; see mirrorlake resolve",
            topic=topic,
        )

    def _leader_silent(self, topic: str, target: str) -> TargetRefused:
        return TargetRefused(
            f"cluster {self._target.alias} does not say where the logs of topic {target} end: the "
            "leader of a partition does not answer; have its broker started",
            topic=topic,
            reason="LEADER_NOT_AVAILABLE",
        )

    def _id_unreported(self, topic: str, target: str) -> TargetRefused:
        return TargetRefused(
            f"cluster {self._target.alias} does not report the id of topic {target}; give its user "
            "the right to describe it",
            topic=topic,
            reason="UNKNOWN_TOPIC_ID",
        )


def until_known(
    target: ClusterAdmin, topics: Iterable[str], seconds: float
) -> tuple[dict[str, TopicIdentity], frozenset[str]]:
    """Topics by name, and those still unknown to the cluster after so many seconds without any
    other one becoming known. Raises ClusterUnreachable."""
    identities, missing = dict[str, TopicIdentity](), frozenset(topics)
    for _ in attempts(seconds, _PAUSE_SECONDS, identities):
        known, missing = target.identities(sorted(missing))
        identities.update(known)
        if not missing:
            break
    return identities, missing


def _end(ends: Sequence[int], partition: int) -> int:
    return ends[partition] if partition < len(ends) else 0
