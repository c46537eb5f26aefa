"""The options of a run, and the error of one that was stopped early."""

from dataclasses import dataclass
from pathlib import Path

from mirrorlake.errors import ReplicationError


@dataclass(frozen=True)
class RunOptions:
    """The options of `run`. `reader` is auto, files or rows (see `produce/flow.py`); `config` is
    the topology file to watch, and `chosen` the flows that `--flow` named. `standby` works only
    behind another process that has worked. `keeps_modes` leaves the noted modes of the flows as
    they were: a command brings the flows up to an end, beside or between their runs."""

    once: bool = False
    reader: str = "auto"
    config: Path | None = None
    chosen: tuple[str, ...] | None = None
    standby: bool = False
    keeps_modes: bool = False


def stopped_early() -> ReplicationError:
    """The error of a run with `--once` that was stopped before its end: else a job that was taken
    away from its host would count as done."""
    return ReplicationError(
        "the run was stopped before it came to the ends that its sources had at its start; what it "
        "did stays, and the next run goes on there"
    )
