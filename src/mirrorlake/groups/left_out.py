"""Groups that a flow leaves out: those that its settings exclude, with positions in its topics, and
those that cannot be moved. They are noted, so that a failover without the source can name them."""

import time
from collections.abc import Callable, Collection, Mapping

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.groups.checkpoint_plan import (
    EXCLUDED,
    GONE,
    NAMELESS,
    OTHER_KIND,
    leaves_out,
    selects_group,
)
from mirrorlake.groups.checkpoint_table import NO_PLACE, left_out_groups, note_left_out
from mirrorlake.groups.running_flow import RunningFlow
from mirrorlake.kafka.groups import GroupAdmin, GroupPositions, Listing
from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.positions import TopicAndPartition

#: How often their positions are queried, seconds: they may be many.
LEFT_OUT_SECONDS = 60.0


def places_within(
    committed: GroupPositions, mirrors: Callable[[str], bool]
) -> dict[str, TopicAndPartition]:
    """For each group with positions in topics that a flow mirrors, the first partition of those."""
    return {
        group: min(ours)
        for group, positions in committed.positions.items()
        if (ours := [key for key in positions if mirrors(key[0])])
    }


#: The groups noted by the reason, each with its place.
_Noted = dict[str, dict[str, TopicAndPartition]]


class LeftOutGroups:
    """Notes the groups that one flow leaves out. For one thread; raises ClusterUnreachable."""

    def __init__(
        self, flow: ResolvedFlow, lake: Lake, source: GroupAdmin, running: RunningFlow
    ) -> None:
        self._flow = flow
        self._lake = lake
        self._source = source
        self._running = running
        self._noted: _Noted | None = None
        self._noted_at = float("-inf")

    def note(self, listing: Listing, other_kinds: frozenset[str] | None) -> None:
        """Note which ones came and went, of the groups that the source has. `other_kinds` of them
        are no consumer groups; None: that is not known."""
        if time.monotonic() - self._noted_at < LEFT_OUT_SECONDS:
            return
        asked_at = time.monotonic()
        noted = self._noted or left_out_groups(self._lake.now, self._flow.name)
        now: _Noted = {
            EXCLUDED: self._excluded(listing, noted[EXCLUDED]),
            OTHER_KIND: self._of_other_kinds(listing, other_kinds, noted[OTHER_KIND]),
            NAMELESS: {group: NO_PLACE for group in listing.states if not group},
        }
        if listing.errors:  # there may be more groups than were reported
            now[NAMELESS] = noted[NAMELESS] | now[NAMELESS]
        # a place that was noted stays: the row that ends it has to have the same one
        now = {
            why: {group: noted[why].get(group, place) for group, place in groups.items()}
            for why, groups in now.items()
        }
        rows = [
            *((why, _but(groups, noted[why])) for why, groups in now.items()),
            *((GONE, _but(noted[why], groups)) for why, groups in now.items()),
        ]
        note_left_out(self._lake, self._flow.name, rows)
        self._noted = now
        self._noted_at = asked_at  # only now: a turn that failed has noted nothing

    def _excluded(
        self, listing: Listing, noted: dict[str, TopicAndPartition]
    ) -> dict[str, TopicAndPartition]:
        """Groups that the settings exclude; noted ones too of which the source does not answer."""
        left_out = {
            group
            for group in listing.states.keys() | noted.keys()
            if leaves_out(self._flow.settings, group)
        }
        committed = self._source.positions(left_out) if left_out else GroupPositions({})
        answered = committed.positions.keys() - committed.errors.keys()
        return _but(noted, answered) | places_within(committed, self._running.mirrors)

    def _of_other_kinds(
        self, listing: Listing, groups: frozenset[str] | None, noted: dict[str, TopicAndPartition]
    ) -> dict[str, TopicAndPartition]:
        """Groups that are no consumer groups; noted ones too where not all were reported."""
        now = {
            group: NO_PLACE for group in groups or () if selects_group(self._flow.settings, group)
        }
        return noted | now if groups is None or listing.errors else now


def _but(
    groups: Mapping[str, TopicAndPartition], others: Collection[str]
) -> dict[str, TopicAndPartition]:
    return {group: place for group, place in groups.items() if group not in others}
