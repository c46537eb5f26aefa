"""What is known of a running process at one moment: what its threads reported, how they are, and
what the topology file says of its flows. Pure."""

from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field

from mirrorlake.metrics.histogram import Histogram
from mirrorlake.offsets.positions import TopicAndPartition

#: A consumer group at one partition of a topic of the flow's source.
GroupPartition = tuple[str, str, int]


@dataclass(frozen=True)
class Volume:
    """Records, and bytes of their keys and values."""

    records: int = 0
    bytes: int = 0

    def plus(self, other: "Volume") -> "Volume":
        """Both together."""
        return Volume(self.records + other.records, self.bytes + other.bytes)


@dataclass(frozen=True)
class PartitionSample:
    """Where a partition was when it was sampled last. Ends are next offsets, None at a target that
    has none; times are seconds since 1970. `stalled_since` is since when records wait and it has
    not moved, by this process or earlier ones; `transaction_since` since when a transaction is open
    at the source, in front of what is to be mirrored."""

    lag_records: int
    lag_seconds: float
    source_end: int
    produced_end: int
    target_end: int | None
    stalled_since: float | None = None
    transaction_since: float | None = None


@dataclass
class FlowFacts:
    """What was reported of one flow. Topics are the source's. `sampled_at` and `heartbeat_at` are
    seconds since 1970, None before the first one."""

    produced: dict[TopicAndPartition, Volume] = field(default_factory=dict)
    landing: dict[str, Histogram] = field(default_factory=dict)
    replication: dict[str, Histogram] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=Counter)
    samples: dict[TopicAndPartition, PartitionSample] = field(default_factory=dict)
    sampled_at: float | None = None
    heartbeat_at: float | None = None
    transactions: int = 0
    aborts: int = 0

    def as_of_now(self) -> "FlowFacts":
        """The same, which later reports do not change."""
        parts = {name: copy(value) for name, value in vars(self).items()}
        return FlowFacts(**parts)

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether all that the source had when it was asked last is at the target."""
        return self.sampled_at is not None and not any(
            sample.lag_records for sample in self.samples.values()
        )


@dataclass(frozen=True)
class WorkerFacts:
    """A thread of the run. `state` is working, failing (its last turn failed, and is tried again),
    ended or stopped (it ended with an error); `failures` counts the turns that failed."""

    name: str
    state: str
    failures: int


@dataclass(frozen=True)
class FlowInForce:
    """A flow that this process runs by the topology file as it is now: the topics of its samples
    that are paused, its objectives, seconds, and the positions of consumer groups by side (source,
    target). Where no sample has come for `quiet_seconds` its samples are of the past."""

    name: str
    paused: frozenset[str] = frozenset()
    objectives: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, Mapping[GroupPartition, int]] = field(default_factory=dict)
    quiet_seconds: float = 60.0


@dataclass(frozen=True)
class Facts:
    """All of it. `phase` is what the start is at, None once flows run; `stands_by` are the flows
    that another process runs, or none yet; `unsettled` says why another process should not
    end yet for this one to go on; `incidents` how many are open by flow and kind; `memory` the
    resident bytes by kind of process; `landed` what was landed of (source cluster, topic,
    partition); `commits` how long commits took, by table."""

    flows: Mapping[str, FlowFacts] = field(default_factory=dict)
    in_force: tuple[FlowInForce, ...] = ()
    stands_by: tuple[str, ...] = ()
    unsettled: str | None = None
    workers: tuple[WorkerFacts, ...] = ()
    incidents: Mapping[tuple[str, str], int] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)
    landed: Mapping[tuple[str, str, int | None], Volume] = field(default_factory=dict)
    commits: Mapping[str, Histogram] = field(default_factory=dict)
    build: Mapping[str, str] = field(default_factory=dict)
    phase: str | None = None
    now: float = 0.0

    @property
    def running(self) -> dict[str, FlowFacts]:
        """What was reported of flows that run now: how one stood that an edit of the topology file
        has ended, or paused, says nothing any more."""
        names = [flow.name for flow in self.in_force]
        return {name: self.flows[name] for name in names if name in self.flows}


def waits(facts: Facts) -> list[str]:
    """Why the process is not ready, a sentence each: a flow has neither produced anything nor seen
    that there is nothing to do, or its thread, or the one that lands its source, ended with an
    error; or it does not stand by yet as it is going to."""
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
            sentences.append(f"flow {flow.name} has not produced anything yet")
    return sentences
