"""Decides when a flow's ACLs and configs are compared: once for a flow and its control loop."""

import threading
import time

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.control.config_sync import ConfigSync

#: How long a comparison of ACLs or configs stays good, at most, seconds.
COMPARED_SECONDS = 5.0


class KeptAlike:
    """ACLs and configs of one flow, as far as it keeps them alike. For any thread, by `use`."""

    def __init__(
        self, flow: ResolvedFlow, configs: ConfigSync, acls: AclSync, use: threading.RLock
    ) -> None:
        self._settings, self._configs, self._acls, self._use = flow.settings, configs, acls, use

    def sync(self) -> None:
        """Catch up with changes of ACLs and configs before records. Raises ClusterUnreachable."""
        self.sync_acls()
        self.sync_configs()

    def sync_acls(self) -> None:
        """Keep ACLs alike unless they were compared a moment ago. Raises ClusterUnreachable."""
        if self._settings.sync_topic_acls_enabled:
            with self._use:
                if _is_due(self._acls.compared_at, self._settings.sync_topic_acls_interval_seconds):
                    self._acls.sync()

    def sync_configs(self) -> None:
        """Keep configs of topics alike as `sync_acls` does ACLs. Raises ClusterUnreachable."""
        if self._settings.sync_topic_configs_enabled:
            interval = self._settings.sync_topic_configs_interval_seconds
            with self._use:
                if _is_due(self._configs.compared_at, interval):
                    self._configs.sync()


def _is_due(compared_at: float, interval: float) -> bool:
    """Whether a comparison at this time, by the monotonic clock, must be repeated."""
    return time.monotonic() - compared_at >= min(COMPARED_SECONDS, interval / 2)
