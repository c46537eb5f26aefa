"""A snapshot of a process: what threads reported, their states, and its flows' settings. Pure."""

from collections import Counter
from collections.abc import Mapping, Set
from copy import copy
from dataclasses import dataclass, field

from mirrorlake.metrics.histogram import Histogram
from mirrorlake.offsets.positions import TopicAndPartition

#: A consumer group, and a topic and partition of the flow's source.
GroupPartition = tuple[str, str, int]


@dataclass(frozen=True)
class Volume:
    """Records, and bytes of their keys and values."""

    records: int = 0
    bytes: int = 0

    def plus(self, other: "Volume") -> "Volume":
        """The sum of both."""
        return Volume(self.records + other.records, self.bytes + other.bytes)


@dataclass(frozen=True)
class PartitionSample:
    """The newest sample of a partition. Ends are exclusive offsets, None at a target without one;
    times are seconds since 1970. `stalled_since`: since when the partition has not moved although
    records wait, as seen by this process or earlier ones. `transaction_since`: since when a
    transaction has been open at the source before the records to mirror."""

    lag_records: int
    lag_seconds: float
    source_end: int
    produced_end: int
    target_end: int | None
    stalled_since: float | None = None
    transaction_since: float | None = None


@dataclass
class FlowFacts:
    """The reports of one flow. Topics are the source's. `sampled_at` and `heartbeat_at` are seconds
    since 1970, None before the first one. `silent` are the partitions that the source did not
    answer about at the last sample; `samples` has the last ones that it did answer."""

    produced: dict[TopicAndPartition, Volume] = field(default_factory=dict)
    landing: dict[str, Histogram] = field(default_factory=dict)
    replication: dict[str, Histogram] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=Counter)
    samples: dict[TopicAndPartition, PartitionSample] = field(default_factory=dict)
    sampled_at: float | None = None
    silent: Set[TopicAndPartition] = frozenset()
    heartbeat_at: float | None = None
    transactions: int = 0
    aborts: int = 0

    def as_of_now(self) -> "FlowFacts":
        """A copy that later reports do not change."""
        parts = {name: copy(value) for name, value in vars(self).items()}
        return FlowFacts(**parts)

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether all records that the source had at the last sample are at the target, in each
        partition that it answered about: one without a leader has an incident of its own. Where it
        answered about none, nothing is known."""
        answered = self.samples.keys() - self.silent
        if self.sampled_at is None or self.silent and not answered:
            return False
        return not any(self.samples[key].lag_records for key in answered)


@dataclass(frozen=True)
class WorkerFacts:
    """A thread of the run. `state` is working, failing (its last turn failed and is retried), ended
    or stopped (it ended with an error); `failures` counts failed turns."""

    name: str
    state: str
    failures: int


@dataclass(frozen=True)
class FlowInForce:
    """A flow that this process runs, by the current topology file: the paused topics among its
    samples, its objectives in seconds, and positions of consumer groups by side (source, target).
    Samples older than `quiet_seconds` are out of date."""

    name: str
    paused: frozenset[str] = frozenset()
    objectives: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, Mapping[GroupPartition, int]] = field(default_factory=dict)
    quiet_seconds: float = 60.0


@dataclass(frozen=True)
class Facts:
    """The whole snapshot. `phase` is the phase of the start, None once flows run; `stands_by` are
    flows that this process does not run but would take over; `unsettled` says why it could not take
    over from another process yet; `incidents` counts open ones by flow and kind; `memory` has
    resident bytes by kind of process; `landed` volumes by (source cluster, topic, partition);
    `commits` durations of commits, by table."""

    flows: Mapping[str, FlowFacts] = field(default_factory=dict)
    in_force: tuple[FlowInForce, ...] = ()
    stands_by: tuple[str, ...] = ()
    unsettled: str | None = None
    workers: tuple[WorkerFacts, ...] = ()
    incidents: Mapping[tuple[str, str], int] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    landed: Mapping[tuple[str, str, int], Volume] = field(default_factory=dict)
    commits: Mapping[str, Histogram] = field(default_factory=dict)
    build: Mapping[str, str] = field(default_factory=dict)
    phase: str | None = None
    now: float = 0.0

    @property
    def running(self) -> dict[str, FlowFacts]:
        """The reports of flows that run now; those that an edit ended or paused are stale."""
        names = [flow.name for flow in self.in_force]
        return {name: self.flows[name] for name in names if name in self.flows}


def waits(facts: Facts) -> list[str]:
    """Why the process is not ready, a sentence each: it is starting or not standing by yet; or a
    flow has neither produced anything nor found nothing to do; or the thread of a flow or of its
    source's landing ended with an error."""
    if facts.phase is not None:
        return [f"starting: {facts.phase}"]
    if facts.unsettled is not None:
        return [facts.unsettled]
    stopped = {worker.name for worker in facts.workers if worker.state == "stopped"}
    sentences = []
    for flow in facts.in_force:
        known = facts.flows.get(flow.name, FlowFacts())
        threads = (f"flow {flow.name}", f"landing from cluster {flow.name.partition('->')[0]}")
        ended = [thread for thread in threads if thread in stopped]
        if ended:
            sentences.append(f"{ended[0]} has stopped; mirrorlake status says why")
        elif not known.batches and not known.has_nothing_to_do:
            why = f", and its source does not answer about {len(known.silent):,} partitions"
            sentence = f"flow {flow.name} has not produced anything yet"
            sentences.append(sentence + why if known.silent else sentence)
    return sentences
