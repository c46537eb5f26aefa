"""Which target topics of a flow still have all that it wrote: proofs of others say nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from confluent_kafka import KafkaException

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.target_generations import TargetGenerations
from mirrorlake.errors import ClusterUnusable
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.targets import mapped_targets
from mirrorlake.offsets.positions import InGeneration
from mirrorlake.verify.job import Range
from mirrorlake.verify.not_compared import REFUSED, STOPPED, NotCompared
from mirrorlake.verify.verdict import TARGET_GONE

_STOPPED = "decided of target_recreated"
_LOST = "{} is not there any more, or is not the topic that the flow wrote to"


@dataclass(frozen=True)
class Targets:
    """The result of comparing ids. `gone` has a difference for each partition of which the map has
    records in a lost target topic. `closed` are the source topics whose records cannot be compared:
    those, topics that an operator has stopped, and topics that the flow no longer selects and whose
    mirror is gone. `not_compared` lists those that are selected and not in `gone`."""

    gone: list[dict[str, Any]]
    closed: frozenset[str]
    not_compared: list[NotCompared]


@dataclass(frozen=True)
class KnownLoss(InGeneration):
    """Source offsets from `first` on that a target has lost; `at` is when that was decided about,
    or found where no decision was made. No `target_topic`: an earlier version did not note it."""

    topic: str
    partition: int
    generation: int
    target_generation: int
    first: int
    at: datetime
    target_topic: str | None = None

    def is_in(self, range_: Range) -> bool:
        """Whether a range has some of them."""
        same = (self.place, self.target_generation) == (range_.place, range_.target_generation)
        return (
            same and self.target_topic in (None, range_.target_topic) and self.first <= range_.last
        )


def losses_of(lake: Lake, flow: str) -> set[KnownLoss]:
    """What a flow's target topics have lost, although their ids are unchanged."""
    return {
        KnownLoss(**{**row, "at": row["at"].replace(tzinfo=timezone.utc)})
        for row in lake.ask("verify_losses", flow=flow)
    }


def compared_targets(
    flow: ResolvedFlow, deployment: Deployment, wanted: Callable[[Mapping[str, Any]], bool]
) -> Targets:
    """Compare the ids of a flow's target topics with the noted ones; report new losses as `run`
    does. `wanted` gets `topic` and `target_topic`. Raises ClusterUnusable."""
    lake, target = deployment.lake, deployment.connections.admin(flow.target)
    generations = TargetGenerations(lake, flow.name, target, Incidents(lake))
    names = {
        topic: name
        for topic, name in generations.names().items()
        if wanted({"topic": topic, "target_topic": name})
    }
    mirrored = {
        topic: name
        for topic, name in names.items()
        if flow.selection.selects(topic) and flow.target_topic(topic) == name
    }
    try:
        comparison = generations.comparison(mirrored)
        others = {names[topic] for topic in names.keys() - mirrored.keys()}
        _, missing = target.identities(sorted(others))
    except KafkaException as error:
        message = f"cluster {flow.target} does not say which topics it has: {error.args[0].str()}"
        raise ClusterUnusable(message, alias=flow.target) from error
    lost = {topic: mirrored[topic] for topic in comparison.waiting | comparison.decided}
    left = {topic for topic in names.keys() - mirrored.keys() if names[topic] in missing}
    closed = frozenset(lost) | comparison.stopped | left
    gone = _gone(flow.name, lake, lost)
    known = {row["topic"] for row in gone}
    not_compared = [_not_compared(topic, STOPPED, _STOPPED) for topic in sorted(comparison.stopped)]
    not_compared += [
        _not_compared(topic, REFUSED, _LOST.format(name))
        for topic, name in sorted(lost.items())
        if topic not in known
    ]
    return Targets(gone, closed, not_compared)


def _not_compared(topic: str, reason: str, detail: str) -> NotCompared:
    return NotCompared(topic, 0, 0, first=0, last=None, reason=reason, detail=detail)


def _gone(flow: str, lake: Lake, lost: Mapping[str, str]) -> list[dict[str, Any]]:
    """A difference for each partition of which `offset_map` has records in a topic that is gone."""
    return [
        {
            "flow": flow,
            "topic": mapped.topic,
            "partition": mapped.partition,
            "kind": TARGET_GONE,
            "first_offset": mapped.first,
            "last_offset": mapped.last,
            "record_count": mapped.record_count,
            "target_offset": None,
            "detail": _LOST.format(name),
        }
        for name, mapped_parts in sorted(mapped_targets(lake, flow, lost.keys()).items())
        for mapped in mapped_parts
        if lost.get(mapped.topic) == name
    ]
