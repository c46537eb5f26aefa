"""Groups that a flow's settings exclude, with positions in its topics: they are noted, so that a
failover without the source can name them."""

import time
from collections.abc import Callable

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.groups.checkpoint_plan import leaves_out
from mirrorlake.groups.checkpoint_table import left_out_groups, note_left_out
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


class LeftOutGroups:
    """Notes the excluded groups of one flow. For one thread; raises ClusterUnreachable."""

    def __init__(
        self, flow: ResolvedFlow, lake: Lake, source: GroupAdmin, running: RunningFlow
    ) -> None:
        self._flow = flow
        self._lake = lake
        self._source = source
        self._running = running
        self._noted: dict[str, TopicAndPartition] | None = None
        self._noted_at = float("-inf")

    def note(self, listing: Listing) -> None:
        """Note which ones came and went, of the groups that the source has."""
        if time.monotonic() - self._noted_at < LEFT_OUT_SECONDS:
            return
        asked_at = time.monotonic()
        noted = self._noted
        if noted is None:
            noted = left_out_groups(self._lake.now, self._flow.name)
        left_out = {
            group
            for group in listing.states.keys() | noted.keys()
            if leaves_out(self._flow.settings, group)
        }
        committed = self._source.positions(left_out) if left_out else GroupPositions({})
        places = places_within(committed, self._running.mirrors)
        fresh = {group: place for group, place in places.items() if group not in noted}
        answered = committed.positions.keys() - committed.errors.keys()
        gone = {group: noted[group] for group in (noted.keys() & answered) - places.keys()}
        note_left_out(self._lake, self._flow.name, fresh, gone)
        self._noted = {
            group: place for group, place in {**noted, **fresh}.items() if group not in gone
        }
        self._noted_at = asked_at  # only now: a turn that failed has noted nothing
