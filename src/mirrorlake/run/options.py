"""How a run was asked to go, and what one says that was stopped before it had done that."""

from dataclasses import dataclass
from pathlib import Path

from mirrorlake.errors import ReplicationError


@dataclass(frozen=True)
class RunOptions:
    """How `run` was asked to go. `reader` is auto, files or rows (see `produce/flow.py`); `config`
    is the topology file to watch, and `chosen` the flows that `--flow` named. `standby` works only
    where another process has worked. `keeps_modes`: how the flows run stays noted as it was, since
    a command brings them up to an end, beside or between their runs."""

    once: bool = False
    reader: str = "auto"
    config: Path | None = None
    chosen: tuple[str, ...] | None = None
    standby: bool = False
    keeps_modes: bool = False


def stopped_early() -> ReplicationError:
    """The error of a run with an end that was stopped before it came to it: else a job that was
    taken away from its host would count as done."""
    return ReplicationError(
        "the run was stopped before it came to the ends that its sources had at its start; what it "
        "did stays, and the next run goes on there"
    )
