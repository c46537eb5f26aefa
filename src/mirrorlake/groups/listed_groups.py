"""Which groups a source has, for the tasks of a flow."""

import logging
import time

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.groups.checkpoint_plan import OTHER_KIND, selects_group
from mirrorlake.kafka.groups import GroupAdmin, Listing

logger = logging.getLogger(__name__)


class ListedGroups:
    """Groups of a source, asked for again in time. For one thread. Raises ClusterUnreachable."""

    def __init__(self, flow: ResolvedFlow, source: GroupAdmin) -> None:
        self._flow = flow
        self._source = source
        self._listed: Listing | None = None
        self._listed_at = float("-inf")
        self._other_kinds: frozenset[str] = frozenset()

    def listing(self) -> Listing:
        """The newest answer; one with errors is not kept."""
        settings = self._flow.settings
        old = time.monotonic() - self._listed_at >= settings.refresh_groups_interval_seconds
        if self._listed is None or self._listed.errors or (settings.refresh_groups_enabled and old):
            self._listed = self._source.listing()
            self._listed_at = time.monotonic()
            self._tell_other_kinds(self._source.other_kinds(self._listed))
        return self._listed

    def _tell_other_kinds(self, groups: frozenset[str]) -> None:
        for group in sorted(groups - self._other_kinds):
            if selects_group(self._flow.settings, group):
                logger.warning(
                    "flow %s leaves out group %s, which is %s", self._flow.name, group, OTHER_KIND
                )
        self._other_kinds = groups
