"""How flows run, noted in the lake until it takes it.

The view `alerts` looks at no flow of which it does not know that: a note that is lost is an alert
that never comes, for as long as the run lasts.
"""

import logging
from collections.abc import Iterable, Mapping

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

    Records go on where the lake takes no note: `error` is why it did not take the last one, None
    where it did.
    """

    def __init__(self, lake: Lake) -> None:
        self.error: MirrorlakeError | None = None
        self._lake = lake
        self._topology: Topology | None = None
        # what the lake has not taken yet
        self._modes: dict[str, Mode] = {}
        self._gone: set[str] = set()
        self._tenures: dict[str, Tenure] = {}

    def fresh(self, tenures: Mapping[str, Tenure]) -> list[str]:
        """The flows of which these tenures are other ones than when this was asked last."""
        fresh = [name for name, tenure in tenures.items() if self._tenures.get(name) != tenure]
        self._tenures |= tenures
        return fresh

    def note(self, topology: Topology, modes: Mapping[str, Mode], gone: Iterable[str] = ()) -> None:
        """Note the objectives of a file, and how flows run by now; see `note_objectives`."""
        self._topology = topology
        self._modes |= modes
        self._gone |= {*gone}
        self._write()

    def again(self) -> None:
        """Note once more what the lake did not take, if there is something."""
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
