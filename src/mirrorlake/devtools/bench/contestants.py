"""The contestants: each replicates one topic from one cluster to another, in its own processes."""

import json
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from mirrorlake.attempts import attempts
from mirrorlake.devtools.bench.lakes import JobLake, in_folder
from mirrorlake.devtools.bench.payload import PARTITIONS
from mirrorlake.devtools.local.process import JvmProcess, start_guarded
from mirrorlake.errors import ReplicationError
from mirrorlake.processes import tree_of, wait_for_end
from mirrorlake.spark.jars import mirror_jars
from mirrorlake.spark.java import find_java

_STOP_SECONDS = 60.0
_KILL_SECONDS = 15.0
#: The JVM flags of Kafka's connect-mirror-maker.sh.
_MIRROR_FLAGS = (
    "-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)  # fmt: skip
_MIRROR_LOG4J = """\
status = error
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %d %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.err.ref = err
"""


@dataclass(frozen=True)
class Job:
    """A run of a contestant: `alias` is the source's, and the topic's prefix at each of `targets`.

    `tuned` gives MirrorMaker 2 settings for throughput; for latency its defaults are better.
    `own_lake` is mirrorlake's lake, None for a folder beside its topology file.
    """

    source: str
    target: str
    topic: str
    alias: str
    directory: Path
    tuned: bool = True
    more_targets: tuple[str, ...] = ()
    own_lake: JobLake | None = None
    partitions: int = PARTITIONS

    @property
    def targets(self) -> dict[str, str]:
        """The bootstrap servers of all targets, by alias."""
        more = {f"west{number}": servers for number, servers in enumerate(self.more_targets, 2)}
        return {"west": self.target, **more}

    @property
    def topology(self) -> Path:
        """The topology file of mirrorlake."""
        return self.directory / "mirrorlake.yml"

    @property
    def lake(self) -> JobLake:
        """The place of mirrorlake's tables."""
        return self.own_lake or in_folder(self.alias, self.directory)

    @property
    def target_topic(self) -> str:
        """The name of the replicated topic."""
        return f"{self.alias}.{self.topic}"


@dataclass
class Running:
    """A contestant's processes and stage: a Delta table, `table`, that must get each record too."""

    name: str
    log: Path
    processes: list[JvmProcess] = field(default_factory=list)
    checkpoints: Path | None = None
    table: Path | None = None

    @property
    def pids(self) -> list[int]:
        """Roots of the process trees."""
        return [process.pid for process in self.processes]

    def check(self) -> None:
        """Raise ReplicationError when a process ended by itself."""
        if any(not process.alive() for process in self.processes):
            raise ReplicationError(f"{self.name} ended by itself: see {self.log}")

    def wait_until(
        self, done: Callable[[], bool], seconds: float, late: str, pause: float = 0.1
    ) -> None:
        """Poll until `done`. Raises ReplicationError when a process ended by itself, and, with the
        text `late`, after `seconds`."""
        for last in attempts(seconds, pause):
            if done():
                return
            self.check()
            if last:
                raise ReplicationError(f"{self.name} {late}: see {self.log}")

    def reading_since(self) -> float | None:
        """When the first batch was planned (epoch seconds); None if nothing is staged, or not yet.

        It reads long before its first record is at the target: a clock from then would miss that.
        """
        if self.checkpoints is None:
            return None
        starts = [path.stat().st_mtime for path in self.checkpoints.glob("**/offsets/0")]
        return min(starts, default=None)

    def stop(self) -> None:
        """End all processes, by force if they do not end in time, including their descendants."""
        tree = tree_of(self.pids)
        for process in self.processes:
            process.signal(signal.SIGTERM)
        for process in self.processes:
            if not process.wait(_STOP_SECONDS):
                process.signal(signal.SIGKILL)
                process.wait(_KILL_SECONDS)
        wait_for_end(tree, _KILL_SECONDS)  # a Spark JVM outlives its Python by some seconds


def start_mirrorlake(job: Job) -> Running:
    """Start `mirrorlake run`, continuous, exactly once, by default settings except tracking."""
    write_topology(job)
    return run_mirrorlake(job)


def run_mirrorlake(job: Job) -> Running:
    """The same by the topology file that is there."""
    log = job.directory / "mirrorlake.log"
    process = start_guarded(mirrorlake_command(job, "run"), str(job.topology), log)
    return Running("mirrorlake", log, [process], job.lake.checkpoints)


def write_topology(job: Job) -> None:
    """Write `Job.topology`."""
    document = {
        "clusters": {
            job.alias: {"bootstrap_servers": job.source},
            **{
                alias: {"bootstrap_servers": servers, "producer": {"compression.type": "lz4"}}
                for alias, servers in job.targets.items()
            },
        },
        "lake": dict(job.lake.document),
        "flows": {f"{job.alias}->{alias}": {"topics": [job.topic]} for alias in job.targets},
        "tracking": {"enabled": False},  # the other contestants import no MLflow
    }
    job.topology.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def mirrorlake_command(job: Job, *words: str) -> list[str]:
    """The command line of a `mirrorlake` command with a job's topology file."""
    return [sys.executable, "-m", "mirrorlake.cli.main", "-c", str(job.topology), *words]


def mirror_properties(job: Job) -> str:
    """Return the mm2.properties of a job: two tasks per flow, default emissions."""
    settings = {
        "clusters": ", ".join((job.alias, *job.targets)),
        f"{job.alias}.bootstrap.servers": job.source,
    }
    for alias, servers in job.targets.items():
        flow = f"{job.alias}->{alias}"
        settings |= {
            f"{alias}.bootstrap.servers": servers,
            f"{flow}.enabled": "true",
            f"{flow}.topics": job.topic,
            f"{alias}->{job.alias}.enabled": "false",
            f"{alias}.producer.compression.type": "lz4",
        }
        if job.tuned:
            settings |= {
                f"{flow}.source.consumer.max.poll.records": "5000",
                f"{alias}.producer.batch.size": str(256 << 10),
                f"{alias}.producer.linger.ms": "20",
            }
    settings |= {
        "tasks.max": "2",
        "refresh.topics.interval.seconds": "5",
        "refresh.groups.interval.seconds": "5",
        "sync.topic.configs.interval.seconds": "5",
    }
    factors = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
    settings |= {f"{name}replication.factor": "1" for name in factors}
    settings |= {
        f"{name}.storage.replication.factor": "1" for name in ("config", "offset", "status")
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def start_mirrormaker(job: Job) -> Running:
    """Start MirrorMaker 2 in dedicated mode."""
    properties, logging = job.directory / "mm2.properties", job.directory / "mm2-log4j2.properties"
    properties.write_text(mirror_properties(job), encoding="utf-8")
    logging.write_text(_MIRROR_LOG4J, encoding="utf-8")
    log = job.directory / "mm2.log"
    command = [str(find_java()), *_MIRROR_FLAGS, f"-Dlog4j2.configurationFile={logging.as_uri()}"]
    command += ["-cp", str(mirror_jars()[0].parent / "*")]
    command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(properties)]
    return Running("MirrorMaker 2", log, [start_guarded(command, str(properties), log)])


def start_mirrormaker_and_landing(job: Job) -> Running:
    """Start MirrorMaker 2, and beside it the plain Spark job that lands the same topic in Delta."""
    both = start_mirrormaker(job)
    both.name, both.log = "MirrorMaker 2 + Spark landing", job.directory
    both.table, both.checkpoints = job.directory / "landed", job.directory / "checkpoint"
    arguments = [job.source, job.topic, str(both.table), str(both.checkpoints)]
    try:
        both.processes.append(_start_module("plain_spark", arguments, job.directory))
    except BaseException:
        both.stop()
        raise
    return both


def start_plain_copier(job: Job) -> Running:
    """Start the copier that only reads and writes."""
    arguments = [job.source, job.topic, job.target, job.target_topic]
    process = _start_module("plain_copier", arguments, job.directory)
    return Running("plain copier", job.directory / "plain_copier.log", [process])


def _start_module(module: str, arguments: Sequence[str], directory: Path) -> JvmProcess:
    command = [sys.executable, "-m", f"mirrorlake.devtools.bench.{module}", *arguments]
    return start_guarded(command, str(directory), directory / f"{module}.log")


class TableRows:
    """Counts the rows of an append-only Delta table from its log alone, reading each entry once."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._next = 0
        self.rows = 0

    def refresh(self) -> int:
        """Read the commits since the last call and return the number of rows."""
        while (entry := self._log / f"{self._next:020d}.json").exists():
            for line in entry.read_text(encoding="utf-8").splitlines():
                added = json.loads(line).get("add")
                if added is not None:
                    self.rows += int(json.loads(added["stats"])["numRecords"])
            self._next += 1
        return self.rows
