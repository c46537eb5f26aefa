"""Topics that two opposite flows share under one name: positions there concern records of both."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mirrorlake.config.precedence import opposite_name
from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import translate_all, translate_living
from mirrorlake.offsets.positions import TopicPartitionOffset, Translated


@dataclass(frozen=True)
class SharedPosition:
    """How each flow translates a position: `onward` brings records to the goal; `back` is the
    reversed map of the flow that brings records born at the goal to the origin.

    A record that neither map has may lie anywhere behind their ends, so a position lies beyond a
    map's end only where that flow has passed it: unread records stay unread.
    """

    onward: Translated
    back: Translated

    @property
    def end(self) -> int:
        """All read records of both flows lie before it, as far as they are mapped."""
        ends = (self.onward.offset, self.back.offset)
        return max(ends) if self.back.mapped else self.onward.offset

    @property
    def wanted(self) -> int:
        """The first mapped, unread record, or the end of all: the group continues here unless an
        unread record is not mapped yet. Records that come to the origin are appended to its log, so
        at the goal they lie behind all records of the goal that were read."""
        ahead = [one.offset for one in (self.onward, self.back) if one.ahead]
        return min(ahead) if ahead else self.end

    @property
    def may_lack_back(self) -> bool:
        """Whether the goal may have records in front of `wanted` that never came to the origin."""
        return not self.back.ahead

    @property
    def may_lack_onward(self) -> bool:
        """Whether unread records at the goal before `wanted`, even the first, may be unmapped."""
        return self.back.ahead and self.onward.offset < self.wanted

    def joined(self, primary: Translated, is_clear: bool) -> Translated:
        """Both as one position, with the other fields of `primary`, the named flow's; `is_clear`:
        no such records are missing."""
        bounds = [self.wanted]
        if not is_clear and self.may_lack_back:
            bounds.append(self.back.offset)
        if not is_clear and self.may_lack_onward:
            bounds.append(self.onward.offset)
        offset = min(bounds)
        return replace(
            primary,
            offset=offset,
            exact=self.onward.exact and self.back.exact and is_clear,
            ahead=self.onward.ahead or self.back.ahead or not is_clear,
            again=max(0, self.end - offset),
            gone=self.onward.gone + self.back.gone,
        )


@dataclass(frozen=True)
class Direction:
    """The direction in which groups move along a flow: from `origin` to `goal`; with `reverse` from
    its target back to its source."""

    flow: ResolvedFlow
    reverse: bool = False

    @property
    def origin(self) -> str:
        """Alias of the cluster whose positions are translated."""
        return self.flow.target if self.reverse else self.flow.source

    @property
    def goal(self) -> str:
        """Alias of the cluster on which groups are moved."""
        return self.flow.source if self.reverse else self.flow.target


@dataclass(frozen=True, kw_only=True)
class Route(Direction):
    """A direction, with the lake and the clients of both clusters to query about it."""

    lake: Reader
    connections: Connections


def joined(
    lake: Reader,
    topology: Topology,
    way: Direction,
    translated: Mapping[TopicPartitionOffset, Translated],
) -> dict[TopicPartitionOffset, Translated]:
    """Extend a flow's translations to records of the opposite flow in the same topics; of a
    partition that this one has never seen, nothing counts as read there. Unmapped records are
    looked for last, since both flows go on meanwhile."""
    name = opposite_name(way.flow)
    opposite = topology.flow(name) if name in topology.flows else None
    shared = {
        key: position
        for key, position in translated.items()
        if opposite is not None and _is_shared(way, opposite, key[0], position.topic)
    }
    if opposite is None or not shared:
        return dict(translated)
    # A flow that is switched off, and has mapped nothing, says nothing of what is at its source;
    # one that is paused brings it later.
    brings = opposite.settings.enabled
    others = translate_living(lake, opposite.name, shared, not way.reverse)
    pairs = {
        key: SharedPosition(*((other, position) if way.reverse else (position, other)))
        for key, position in shared.items()
        if (other := others.get(key, _unseen(position))).topic == position.topic
        and (other.mapped or brings)
    }
    clear = _clear(lake, way, pairs)
    ways = {key: pair.joined(shared[key], key in clear) for key, pair in pairs.items()}
    return {**translated, **ways}


def _unseen(position: Translated) -> Translated:
    """How a flow translates a position of a partition that it has never seen."""
    return Translated(position.topic, position.partition, 0, exact=False, ahead=False, mapped=False)


def _is_shared(way: Direction, opposite: ResolvedFlow, origin_topic: str, goal_topic: str) -> bool:
    source, target = (origin_topic, goal_topic) if way.reverse else (goal_topic, origin_topic)
    return opposite.selection.selects(source) and opposite.target_topic(source) == target


def _clear(
    lake: Reader, way: Direction, pairs: Mapping[TopicPartitionOffset, SharedPosition]
) -> set[TopicPartitionOffset]:
    """The positions with no unread, unmapped record in front of them at the goal: the flow that
    could have some there has passed it, and has mapped nothing more since."""
    names = (opposite_name(way.flow), way.flow.name)
    back, onward = reversed(names) if way.reverse else names
    at_goal = {
        key: (pair.onward.topic, key[1], pair.wanted)
        for key, pair in pairs.items()
        if pair.may_lack_back or pair.may_lack_onward
    }
    here = translate_all(lake, back, at_goal.values())
    at_origin = {
        key: (key[0], key[1], here[place].offset)
        for key, place in at_goal.items()
        if pairs[key].may_lack_onward and place in here
    }
    there = translate_all(lake, onward, at_origin.values())
    return {
        key
        for key, pair in pairs.items()
        if (not pair.may_lack_back or _is_beyond(here.get(at_goal[key]), pair.back.offset))
        and (
            not pair.may_lack_onward
            or (key in at_origin and _is_beyond(there.get(at_origin[key]), key[2]))
        )
    }


def _is_beyond(there: Translated | None, mapped_end: int) -> bool:
    """Whether a flow has passed a position, while its map ends no further than `mapped_end`."""
    return there is not None and there.exact and there.end <= mapped_end
