"""Holds processes to a part of a core, by control groups of Linux: of version 2, or the controller
`cpu` of version 1 (`Documentation/admin-guide/cgroup-v2.rst` and `scheduler/sched-bwc.rst` of the
kernel)."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mirrorlake.attempts import attempts
from mirrorlake.errors import InputError

ROOT = Path("/sys/fs/cgroup")
#: How often a quota is given anew, microseconds: what containers have by default.
PERIOD_US = 100_000
_LEFT_SECONDS = 5.0


class Quotas:
    """Groups of processes, each of which gets so many cores. As a context manager it removes the
    groups, once their processes have ended. Raises InputError where this user can make none."""

    def __init__(self, cores: float, root: Path = ROOT) -> None:
        self._root = root
        self._cores = cores
        self._groups: dict[str, Path] = {}
        try:
            self.hold("tried", ())
        except OSError as error:
            self._remove()
            raise InputError(
                f"processes cannot be held to a part of a core here: {error}; run this as root "
                f"where {root} has the controller cpu"
            ) from error

    def __enter__(self) -> "Quotas":
        return self

    def __exit__(self, *_error: object) -> None:
        self._remove()

    def hold(self, name: str, pids: Iterable[int]) -> None:
        """Have processes, and those that they will start, share the quota of a group; one that has
        ended is passed over. Raises OSError."""
        if name not in self._groups:
            self._make(name)
        for pid in pids:
            with suppress(ProcessLookupError):
                _write(self._groups[name] / "cgroup.procs", str(pid))

    def _make(self, name: str) -> None:
        group, quota = f"mirrorlake-{os.getpid()}-{name}", round(self._cores * PERIOD_US)
        offered = self._root / "cgroup.controllers"
        if offered.exists() and "cpu" in offered.read_text(encoding="utf-8").split():
            _write(self._root / "cgroup.subtree_control", "+cpu")
            path = self._root / group
            limits = {"cpu.max": f"{quota} {PERIOD_US}"}
        else:
            path = self._root / "cpu" / group
            limits = {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{quota}"}
        path.mkdir()
        self._groups[name] = path
        for file, limit in limits.items():
            _write(path / file, limit)

    def _remove(self) -> None:
        """Remove the groups; the kernel refuses that as long as a process of one is ending."""
        for name, path in list(self._groups.items()):
            for last in attempts(_LEFT_SECONDS, 0.05):
                try:
                    path.rmdir()
                    break
                except OSError:
                    if last:
                        raise
            del self._groups[name]


def _write(file: Path, text: str) -> None:
    """Write to a file of the kernel's, which is there: no other may come about beside it."""
    with file.open("r+", encoding="utf-8") as control:
        control.write(text)
