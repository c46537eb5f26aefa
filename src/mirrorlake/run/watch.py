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

    `in_force` is what the file said when it was read for the run: an edit since then is one.
    `again` says whether what `edited` gave last had been given before. `clock` gives seconds.
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
        # not before it is known what it says: else an edit that could not be read is none
        self._looked_at(content)
        return topology

    def _looked_at(self, content: bytes | None) -> None:
        self._known, self._waiting, self._in_force, self.again = content, None, None, False

    def wait(self, topology: Topology) -> None:
        """Keep an edit that cannot be in force now, until it can or the file is edited once
        more."""
        self._waiting, self._tried = topology, self._clock()

    def done(self) -> None:
        """What was given last is in force."""
        self._waiting = None

    def _content(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except OSError:
            # an editor may be replacing it; `load_topology` says what is wrong if it stays away
            return None
