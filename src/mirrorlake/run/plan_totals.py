"""The totals of one flow's plan, from both clusters and the lake."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.topic_plan import TopicPlan
from mirrorlake.kafka.connections import Connections
from mirrorlake.offsets.positions import TopicAndPartition, partitions_of
from mirrorlake.run.totals import Totals, not_landed, topic_totals


class Staged(Protocol):
    """What the lake holds of a plan's topics; None where that is not known."""

    def ends(self, alias: str) -> Mapping[TopicAndPartition, int] | None:
        """The offset where landing of each partition of a source cluster goes on."""

    def waiting(
        self, flow: str, alias: str, topics: Collection[str]
    ) -> tuple[int | None, int | None]:
        """How many records of topics are staged and not yet at the target, and their bytes."""


class NothingStaged:
    """The stage when there is no lake yet."""

    def ends(self, _alias: str) -> Mapping[TopicAndPartition, int]:
        """Nothing is landed."""
        return {}

    def waiting(self, _flow: str, _alias: str, _topics: Collection[str]) -> tuple[int, int]:
        """Nothing waits in the stage."""
        return 0, 0


class UnknownStage:
    """The stage of a lake that may exist, but cannot be asked now."""

    def ends(self, _alias: str) -> None:
        """Not known."""

    def waiting(self, _flow: str, _alias: str, _topics: Collection[str]) -> tuple[None, None]:
        """Not known."""
        return None, None


def flow_totals(
    connections: Connections, flow: ResolvedFlow, plans: Sequence[TopicPlan], staged: Staged
) -> Totals:
    """The totals of a flow's plan, by asking both clusters and the lake."""
    counts = topic_totals(
        plans,
        {name: info.partitions for name, info in connections.admin(flow.target).topics().items()},
    )
    going = {plan.topic: plan.partitions for plan in plans if plan.action != "refuse"}
    records, size = staged.waiting(flow.name, flow.source, going)
    return replace(
        counts,
        offsets_at_source=_at_source(connections, flow, going, staged.ends(flow.source)),
        records_staged=records,
        bytes_staged=size,
    )


def _at_source(
    connections: Connections,
    flow: ResolvedFlow,
    topics: Mapping[str, int],
    staged: Mapping[TopicAndPartition, int] | None,
) -> int | None:
    if staged is None:
        return None
    source = connections.admin(flow.source)
    places = partitions_of(topics)
    starts = source.start_offsets(places, skip_silent=True)
    ends = source.end_offsets(places, skip_silent=True)
    if len(ends) < len(places):
        return None  # a leader does not tell its offsets
    return not_landed(starts, ends, staged)
