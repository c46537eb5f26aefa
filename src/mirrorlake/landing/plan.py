"""What the next landing query of a source cluster reads, and what operators must know first.

`LandingPlanner` compares the source's content (`landing/source.py`) with what is staged
(`landing/generations.py`). It imports neither Spark nor threads nor clients, so the same decisions
run against clusters and against a model. Each query begins with an explicit offset for every
partition; no note of an earlier query is used.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from mirrorlake.lake.retention import Removal
from mirrorlake.landing.excluded import ExcludedPartitions
from mirrorlake.landing.rewound import RewindCheck
from mirrorlake.landing.source_comparison import (
    NO_GENERATIONS,
    CurrentGenerations,
    Decision,
    LandingPlan,
    Loss,
    Planned,
    SourceTopic,
    TopicGeneration,
    accepted_starts,
    blocked,
    compare_source,
    position_of,
    recreated,
)
from mirrorlake.offsets.known_offsets import spread
from mirrorlake.offsets.positions import (
    LogEnds,
    PartitionGeneration,
    TopicAndPartition,
    partitions_of,
)

if TYPE_CHECKING:
    from mirrorlake.landing.generations import LakeLandingStore
    from mirrorlake.landing.source import ClusterSource

#: How long the leader of a partition that is read may stay silent, seconds.
SILENT_SECONDS = 20.0
#: From how many partitions on the unmoved ones are asked for their ends less often than a plan is
#: compared; and how often, seconds, if they are not more than SPREAD_FROM.
MANY, ALL_SECONDS = 200, 10.0


class LandingPlanner:
    """Plans the queries of one source cluster, one after another. For one thread."""

    def __init__(
        self,
        alias: str,
        source: "ClusterSource",
        store: "LakeLandingStore",
        clock: Callable[[], float] = monotonic,
        begins: Callable[
            [CurrentGenerations], Mapping[TopicAndPartition, int]
        ] = lambda current: {},
    ) -> None:
        """Prepare; `begins` returns the first offsets of partitions without staged records, where
        these are not the starts of their logs."""
        self.alias = alias
        self.source = source
        self._store = store
        self._clock = clock
        self._begins = begins
        self._refusals = ExcludedPartitions()
        self._rewinds = RewindCheck(source, store)
        self._planned_at = clock()
        #: Partitions of the plan whose leader did not answer the last request, and since when.
        self._silent: dict[TopicAndPartition, float] = {}
        #: When all partitions were asked for their ends, and how far they were covered then.
        self._all_asked = float("-inf")
        self._compared: Mapping[TopicAndPartition, int] = {}

    def plan(
        self,
        covered: Mapping[TopicAndPartition, int],
        covered_in: CurrentGenerations = NO_GENERATIONS,
    ) -> Planned:
        """Compare the source with what is staged, and plan a query around what must wait.

        `covered` is how far queries of this process came, over transaction markers too: it shows
        what is not lost, but not where to begin. `covered_in` are the generations that these
        queries were planned for. New losses have to be reported before the query runs.
        """
        self._planned_at, self._silent = self._clock(), {}
        self._all_asked = float("-inf")
        shown = self.source.topics()
        topics = {name: topic for name, topic in shown.items() if topic.undescribed is None}
        ids = {name: topic.topic_id for name, topic in topics.items()}
        current, decisions = self._current_generations(ids), self._store.decisions()
        remade = recreated(ids, current, decisions)
        refused = self._refused(topics)
        stopped = {loss.topic for loss in remade} | blocked(decisions)[0]
        counts = {name: topic.partitions for name, topic in topics.items() if name not in stopped}
        keys = [key for key in partitions_of(counts) if key not in refused]
        log = self.source.ends(keys)
        unanswered = frozenset(keys) - log.keys()
        refused |= dict.fromkeys(unanswered, "the cluster does not report its offsets")
        staged = self._store.staged_ends()
        known = {key: position_of(key, current, staged) for key in log}
        positions = {key: position for key, position in known.items() if position is not None}
        covered = _still_covered(covered, covered_in, log, current)
        seen = self._seen(log, positions, covered, decisions, current)
        rewound = self._rewound(log, positions, current, decisions)
        begins = self._begins(current)
        result = compare_source(
            log,
            positions,
            decisions=decisions,
            seen=seen,
            rewound=rewound,
            begins=begins,
            made_again={key for key in log if current.generation(key)},
        )
        self._rewinds.note({key: log[key].epoch for key in result.starts})
        losses = (*remade, *_in_generations(result.losses, current))
        generations = {
            key: current.generation(key) for key in result.starts if current.generation(key)
        }
        newest = self._store.newest_batch()
        plan = LandingPlan(self.alias, result.starts, generations, newest)
        gone = current.topics.keys() - shown.keys()
        waiting, still_open = _waiting(decisions, losses), _named(decisions, ids)
        return Planned(
            plan,
            shown,
            log,
            losses,
            given_up=_in_generations(result.given_up, current),
            refused=refused,
            unanswered=unanswered,
            current_generations=current,
            open=still_open,
            waiting=waiting,
            covered=covered,
            passed_over=tuple(
                Removal(self.alias, *key, current.generation(key), log[key].start, start)
                for key, start in result.starts.items()
                if key in begins and key not in positions and start > log[key].start
            ),
            denied={**_undescribed(shown), **(self.source.denied(gone) if gone else {})},
        )

    def differs(self, planned: Planned, covered: Mapping[TopicAndPartition, int]) -> bool:
        """Whether a plan is out of date: topics or partitions came, went or changed, a log's end
        went back or its leader changed, a leader has not answered for long, an operator decided, or
        a partition that was left out may be tried again."""
        topics = self.source.topics()
        if topics != planned.topics or self._refusals.over(self._planned_at, self._clock()):
            return True
        asked = self._due(planned, covered)
        log = self.source.high_watermarks(asked | planned.unanswered)
        if self._is_silent(asked - log.keys()):
            return True
        for key, (end, epoch) in log.items():
            if (
                key in planned.unanswered
                or epoch != planned.log[key].epoch
                or end < covered.get(key, 0)
            ):
                return True
        # If nothing waits, no operator decides: that saves a query every few seconds.
        return any(planned.waiting) and blocked(self._store.decisions()) != planned.waiting

    def _due(
        self, planned: Planned, covered: Mapping[TopicAndPartition, int]
    ) -> Set[TopicAndPartition]:
        """The partitions of a plan to be asked for their ends now. If there are many: those that
        have moved since, and those that did not answer; now and then all."""
        before, self._compared = self._compared, dict(covered)
        every, now = planned.plan.starts.keys(), self._clock()
        if len(every) < MANY or now - self._all_asked >= spread(ALL_SECONDS, len(every)):
            self._all_asked = now
            return every
        moved = {key for key, end in covered.items() if before.get(key) != end}
        return every & (moved | self._silent.keys())

    def _is_silent(self, unanswered: Collection[TopicAndPartition]) -> bool:
        """Whether a partition has been unanswered for SILENT_SECONDS: a query would wait for it in
        silence, while a new plan leaves it out and reports it."""
        now = self._clock()
        self._silent = {key: self._silent.get(key, now) for key in unanswered}
        return any(now - since >= SILENT_SECONDS for since in self._silent.values())

    def refuse(self, refused: Mapping[TopicAndPartition, str]) -> None:
        """Leave out partitions that the query could not read, and why; longer each time."""
        self._refusals.add(refused, self._clock())

    def succeeded(self, keys: Collection[TopicAndPartition]) -> None:
        """Forget the refusals of partitions that a query has read."""
        self._refusals.forget(keys)

    def _current_generations(self, ids: Mapping[str, str]) -> CurrentGenerations:
        current = self._store.current_generations()
        new = {
            topic: TopicGeneration(0, topic_id)
            for topic, topic_id in ids.items()
            if topic not in current.topics
        }
        self._store.begin(new)
        return CurrentGenerations({**current.topics, **new}, current.branches)

    def _refused(self, topics: Mapping[str, SourceTopic]) -> dict[TopicAndPartition, str]:
        """Partitions that must not be read now, and why: one would stop a whole query."""
        refused = {
            key: why
            for key, why in self._refusals.excluded(self._clock()).items()
            if key[0] in topics
        }
        for name, topic in topics.items():
            for partition in range(topic.partitions):
                if not topic.readable:
                    refused[name, partition] = "the cluster does not allow to read the topic"
                elif partition in topic.leaderless:
                    refused[name, partition] = "the partition has no leader"
        return refused

    def _rewound(
        self,
        log: Mapping[TopicAndPartition, LogEnds],
        positions: Mapping[TopicAndPartition, int],
        current: CurrentGenerations,
        decisions: Collection[Decision],
    ) -> dict[TopicAndPartition, int]:
        """The partitions whose log at the source differs from what is staged, with the offset from
        which on; those that are already reported are left out."""
        waiting = blocked(decisions)[1]
        ends = {key: end for key, end in positions.items() if key not in waiting}
        return self._rewinds.rewound(
            log, ends, {key: current.topics[key[0]].generation for key in ends}
        )

    def _seen(
        self,
        log: Mapping[TopicAndPartition, LogEnds],
        positions: Mapping[TopicAndPartition, int],
        covered: Mapping[TopicAndPartition, int],
        decisions: Collection[Decision],
        current: CurrentGenerations,
    ) -> dict[TopicAndPartition, int]:
        """How far landing has come. The lake is asked only about partitions where that matters."""
        seen = dict(covered)
        accepted = accepted_starts(decisions)
        doubtful = [
            PartitionGeneration(*key, current.generation(key))
            for key, ends in log.items()
            if ends.start > max(place.get(key, 0) for place in (positions, seen, accepted))
        ]
        for place, position in (self._store.seen(doubtful) if doubtful else {}).items():
            key = place.topic_partition
            seen[key] = max(position, seen.get(key, 0))
        return seen


def _still_covered(
    covered: Mapping[TopicAndPartition, int],
    covered_in: CurrentGenerations,
    log: Mapping[TopicAndPartition, LogEnds],
    current: CurrentGenerations,
) -> dict[TopicAndPartition, int]:
    """What queries covered in the generations that are still the newest ones."""
    return {
        key: min(end, log[key].end) if key in log else end
        for key, end in covered.items()
        if covered_in.generation(key) == current.generation(key)
    }


def _in_generations(losses: Iterable[Loss], current: CurrentGenerations) -> tuple[Loss, ...]:
    return tuple(
        replace(loss, generation=current.generation((loss.topic, loss.partition)))
        for loss in losses
        if loss.partition is not None
    )


def _undescribed(topics: Mapping[str, SourceTopic]) -> dict[str, str | None]:
    """Why listed topics are not described, also those never read, which nothing else reports."""
    return {
        name: topic.undescribed for name, topic in topics.items() if topic.undescribed is not None
    }


def _waiting(
    decisions: Collection[Decision], losses: Collection[Loss]
) -> tuple[frozenset[str], frozenset[TopicAndPartition]]:
    """The topics and partitions that wait for an operator once these losses are reported."""
    open_losses = [
        Decision(
            loss.topic, loss.partition, loss.kind, last_offset=loss.last, open=True, resolution=None
        )
        for loss in losses
    ]
    return blocked([*decisions, *open_losses])


def _named(decisions: Collection[Decision], topics: Collection[str]) -> frozenset[str]:
    """The names of the existing topics and partitions that wait for an operator."""
    return frozenset(
        decision.topic if decision.partition is None else f"{decision.topic}-{decision.partition}"
        for decision in decisions
        if decision.open and decision.topic in topics
    )
