"""Watching the topology file of a running replicator."""

import time
from collections.abc import Callable
from pathlib import Path

from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.errors import TopologyError

#: How long an edit that cannot be in force yet waits until it is tried again, seconds.
RETRY_SECONDS = 10.0


class TopologyWatch:
    """Notices edits of a topology file by its content, and keeps one that has to wait.

    `in_force` is the topology that the run began with: a change since then is an edit. `again` says
    whether `edited` had returned its last result before. `clock` gives seconds.
    """

    def __init__(
        self, path: Path, in_force: Topology, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self.again = False
        self._clock = clock
        self._in_force: Topology | None = in_force
        self._known: bytes | None = None
        self._waiting: Topology | None = None
        self._tried = 0.0

    def edited(self) -> Topology | None:
        """The topology, if the file was edited since the last call, or if an edit has waited for
        RETRY_SECONDS. Raises TopologyError, once, if the edit is invalid."""
        content = self._content()
        if content == self._known and self._in_force is None:
            self.again = True
            return self._waiting if self._clock() - self._tried >= RETRY_SECONDS else None
        try:
            topology: Topology | None = load_topology(self.path)
        except TopologyError:
            self._looked_at(content)
            raise
        topology = None if topology == self._in_force else topology
        # only once the content is loaded: else an edit that could not be read would be lost
        self._looked_at(content)
        return topology

    def _looked_at(self, content: bytes | None) -> None:
        self._known, self._waiting, self._in_force, self.again = content, None, None, False

    def wait(self, topology: Topology) -> None:
        """Keep an edit that cannot be in force now, until it can be or the file is edited again."""
        self._waiting, self._tried = topology, self._clock()

    def done(self) -> None:
        """Note that the last edit is in force."""
        self._waiting = None

    def _content(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except OSError:
            # an editor may be replacing it; `load_topology` says what is wrong if it stays away
            return None
