"""How flows run, written to the lake and retried until it takes the note.

The view `alerts` ignores a flow whose mode it does not know: a note that is lost is an alert that
never comes, for as long as the run lasts.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

from mirrorlake.config.topology import Topology
from mirrorlake.errors import MirrorlakeError
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.objectives import Mode, note_objectives
from mirrorlake.spark.causes import as_mirrorlake_error

logger = logging.getLogger(__name__)

Tenure = tuple[object, int]
"""Who runs a flow here, and how often it has taken the lease."""


class NotedModes:
    """The notes of one run, with the objectives of its topology file. For the thread of a
    replicator.

    Records go on even if the lake takes no note: `error` is why it did not take the last one, else
    None. A run that `keeps` the modes, as a command does, notes only the objectives.
    """

    def __init__(self, lake: Lake, *, once: bool, keeps: bool) -> None:
        self.error: MirrorlakeError | None = None
        self._lake, self._keeps = lake, keeps
        self._mode: Mode = "once" if once else "continuous"
        self._topology: Topology | None = None
        # notes that the lake has not taken yet
        self._modes: dict[str, Mode] = {}
        self._gone: set[str] = set()
        self._tenures: dict[str, Tenure] = {}

    def follow(
        self, topology: Topology, tenures: Mapping[str, Tenure], always: bool = False
    ) -> None:
        """Note the mode of flows whose lease this process has taken since the last call: the
        process before may have noted another. With `always`, note at least the objectives."""
        fresh = [name for name, tenure in tenures.items() if self._tenures.get(name) != tenure]
        self._tenures |= tenures
        if fresh or always:
            self.note(topology, fresh, self._mode)

    def note(
        self, topology: Topology, flows: Sequence[str], mode: Mode, gone: Iterable[str] = ()
    ) -> None:
        """Note the objectives of a file, and the mode of these flows; see `note_objectives`."""
        self._topology = topology
        self._modes |= {} if self._keeps else dict.fromkeys(flows, mode)
        self._gone |= {*gone}
        self._write()

    def again(self) -> None:
        """Write again what the lake did not take, if anything."""
        if self.error is not None:
            self._write()

    def _write(self) -> None:
        assert self._topology is not None
        try:
            note_objectives(self._lake, self._topology, self._modes, sorted(self._gone))
        except Exception as error:  # noqa: BLE001 - of whatever kind: records go on
            problem = as_mirrorlake_error(error, "noting the objectives of the flows")
            if self.error is None:
                logger.error("%s; it is tried again", problem)
            self.error = problem
        else:
            self.error = None
            self._modes, self._gone = {}, set()
