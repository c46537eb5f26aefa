"""Watching the topology file of a running replicator."""

from pathlib import Path

from mirrorlake.core.topology import Topology, load_topology


class TopologyWatch:
    """Notices edits of a topology file by its content."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = self._content()

    def edited(self) -> Topology | None:
        """The topology, if the file was edited since the last call. Raises TopologyError, once, if the edit is
        invalid."""
        content = self._content()
        if content == self._known:
            return None
        self._known = content
        return load_topology(self.path)

    def _content(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except OSError:
            return None  # an editor may be replacing it; `load_topology` says what is wrong if it stays away
