"""How landing and producing scale over executors that share only the lake's folder with the driver:
Spark's `local-cluster`, with each executor's processes limited to a quarter of a core, so that few
cores have room for several.

They are limited from the first batch on, and each gets the same number of records, so that the
start of Python workers is the same share of every run.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from mirrorlake.attempts import attempts
from mirrorlake.devtools.bench.arena import Arena, contestant, delete_topic
from mirrorlake.devtools.bench.contestants import Job, Running, run_mirrorlake, write_topology
from mirrorlake.devtools.bench.measure import Race, watch
from mirrorlake.devtools.bench.payload import load_topic
from mirrorlake.devtools.bench.report import MIRRORLAKE, beginning
from mirrorlake.errors import InputError, ReplicationError
from mirrorlake.processes import command_of, cpu_seconds, tree_of
from mirrorlake.spark.home import in_environment

#: The numbers of executors to compare, and the cores of each.
COUNTS: Sequence[int] = (1, 2, 4)
CORES_OF_ONE = 0.25
RECORD_BYTES = 120
#: Of the topic: divisible by each number of executors.
PARTITIONS = 12
#: The main class of Spark's executors.
_PROGRAM = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_RACE_SECONDS = 180.0


@dataclass(frozen=True)
class Scaled:
    """One run: executors, records, seconds and records a second from its first read on; busy cores
    of the driver (Python and Java), of all executors and of the brokers on both sides; and the
    driver's share of the CPU of driver and executors."""

    executors: int
    records: int
    seconds: float
    records_per_second: int
    driver_cores: float
    executors_cores: float
    brokers_cores: float
    driver_share: float


ROOT = Path("/sys/fs/cgroup")
#: The period of a quota, microseconds: the default of containers.
PERIOD_US = 100_000
_LEFT_SECONDS = 5.0


class Quotas:
    """Control groups of processes, each limited to `cores`. As a context manager it removes the
    groups once their processes have ended. Raises InputError if this user cannot create one."""

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
        """Put processes, with their future children, under the quota of a group; ended ones are
        skipped. Raises OSError."""
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
        """Remove the groups; the kernel refuses that while a process of one is ending."""
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
    """Write to an existing kernel file; never create one."""
    with file.open("r+", encoding="utf-8") as control:
        control.write(text)


def measure_executors(arena: Arena, records_of_one: int) -> dict[str, Any]:
    """Measure run after run, `records_of_one` per executor. Raises InputError, ReplicationError."""
    with Quotas(CORES_OF_ONE) as quotas:
        runs = [_run(arena, quotas, count, records_of_one * count) for count in COUNTS]
    return {
        "record_bytes": RECORD_BYTES,
        "partitions": PARTITIONS,
        "cores_of_one": CORES_OF_ONE,
        "runs": [asdict(run) for run in runs],
    }


def _run(arena: Arena, quotas: Quotas, count: int, records: int) -> Scaled:
    topic, name = f"bench-executors-{count}", f"executors-{count}"
    arena.say(f"executors: {count}, each held to {CORES_OF_ONE} cores: {records:,} records")
    load_topic(arena.source, topic, RECORD_BYTES, records, arena.directory, partitions=PARTITIONS)
    job = replace(arena.job(MIRRORLAKE, name, topic, tuned=True), partitions=PARTITIONS)
    with (
        in_environment({"MIRRORLAKE_CORES": f"local-cluster[{count},1,1024]"}),
        contestant(arena, job, partial(_start, tasks=count)) as running,
    ):
        held = _HeldExecutors(**vars(running), quotas=quotas)
        targets, brokers = [arena.target], arena.brokers
        race = watch(held, job, targets, brokers, records=records, timeout=_RACE_SECONDS)
        seconds = [*held.seconds, held.cpu_seconds()]
    delete_topic(arena.east, topic)
    if held.count != count:
        raise ReplicationError(f"{held.count} executors ran instead of {count}: see {running.log}")
    scaled = scaled_of(race, count, seconds)
    arena.say(f"executors: {count}: {scaled.records_per_second:,} records/s")
    return scaled


def _start(job: Job, tasks: int) -> Running:
    """Start mirrorlake with this many landing and producing tasks."""
    write_topology(job)
    document = yaml.safe_load(job.topology.read_text(encoding="utf-8"))
    document["clusters"][job.alias]["landing"] = {"files_per_batch": tasks}
    for flow in document["flows"].values():
        flow["produce_tasks"] = tasks
    job.topology.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return run_mirrorlake(job)


def scaled_of(race: Race, executors: int, cpu: Sequence[float]) -> Scaled:
    """The figures of a run with this many executors; `cpu` are their seconds by each sample."""
    (begin, before), end = beginning(race), race.samples[-1]
    seconds = end.at - before.at
    of_executors = cpu[-1] - cpu[race.samples.index(before)]
    of_driver = end.cpu - before.cpu - of_executors
    return Scaled(
        executors,
        race.records,
        round(end.at - begin, 2),
        round(race.records / (end.at - begin)),
        driver_cores=round(of_driver / seconds, 2),
        executors_cores=round(of_executors / seconds, 2),
        brokers_cores=round((end.brokers_cpu - before.brokers_cpu) / seconds, 2),
        driver_share=round(of_driver / (of_driver + of_executors), 3),
    )


@dataclass
class _HeldExecutors(Running):
    """A run with executors; each, with its Python workers, gets its quota once records are read.
    `seconds` are their CPU at each look but the last."""

    quotas: Quotas = field(kw_only=True)
    seconds: list[float] = field(default_factory=list)
    held: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        """How many executors there were."""
        return len(self.held)

    def check(self) -> None:
        """Look at the executors, too: it is called behind each sample that is not the last."""
        super().check()
        self.seconds.append(self.cpu_seconds())

    def cpu_seconds(self) -> float:
        """The executors' CPU so far. Also puts new executors under their quota."""
        executors = {
            process.pid for process in tree_of(self.pids) if _PROGRAM in command_of(process.pid)
        }
        if self.reading_since() is not None:
            for pid in executors - self.held:
                self.quotas.hold(f"executor-{pid}", [each.pid for each in tree_of([pid])])
                self.held.add(pid)
        return cpu_seconds(executors)
