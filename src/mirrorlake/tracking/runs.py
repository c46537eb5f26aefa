"""Records the commands `run`, `bench`, `failover` and `failback` as MLflow runs."""

import json
import logging
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from mirrorlake.config.metrics import Tracking
from mirrorlake.config.redaction import redacted, topology_hash
from mirrorlake.config.topology import Topology
from mirrorlake.extras import installed, missing
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.samples import FlowLag
from mirrorlake.spark.home import session_is_given
from mirrorlake.spark.jars import DELTA_VERSION
from mirrorlake.tracking.meter import Meter
from mirrorlake.tracking.recorder import TICK_SECONDS, Begin, Recorder
from mirrorlake.tracking.store import described, open_store

if TYPE_CHECKING:  # a run over few records needs no session
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

#: The environment variable that, set to off, disables recording whatever the topology file says.
SWITCH = "MIRRORLAKE_TRACKING"
#: How long the end of a command waits for MLflow, seconds.
CLOSE_SECONDS = 5.0
#: The same if only recording is left to do: importing MLflow and making a store takes up to 7 s.
MAKE_SECONDS = 120.0

_PACKAGES = ("mirrorlake", "pyspark", "confluent-kafka")
#: Spark settings that describe the size and tuning of a session; none contains a secret.
_SPARK = (
    "spark.master", "spark.driver.memory", "spark.executor.instances", "spark.executor.cores",
    "spark.executor.memory", "spark.sql.shuffle.partitions", "spark.sql.parquet.compression.codec",
    "spark.databricks.clusterUsageTags.sparkVersion",
    "spark.databricks.clusterUsageTags.clusterWorkers",
    "spark.databricks.clusterUsageTags.clusterNodeType",
)  # fmt: skip
#: Figures of a throughput run that are recorded.
_THROUGHPUT = ("records_per_second", "cpu_seconds_per_million", "seconds")


class Tracked:
    """The recorded run, or a no-op if recording is off: calls return at once and raise nothing."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._meter = Meter()
        self._read_at = self._began = time.monotonic()
        self._cpu = self._cpu_began = 0.0

    def start(
        self, tracking: Tracking, directory: Path | None, begin: Begin, figures: bool, tick: float
    ) -> None:
        """Begin to record."""
        self._cpu = self._cpu_began = _cpu()
        self._recorder = Recorder(
            lambda: open_store(tracking, directory),
            begin,
            described(tracking, directory),
            self._figures if figures else None,
            tick,
        )

    def batch(self, flow: str, report: BatchReport) -> None:
        """A batch was produced."""
        self._meter.batch(flow, report)

    def sampled(self, flow: str, lag: FlowLag) -> None:
        """A sample of positions was written."""
        self._meter.sampled(flow, lag)

    def session(self, spark: "SparkSession") -> None:
        """Record the settings of the session."""
        if self._recorder is not None:
            self._recorder.params(spark_facts(spark))

    def metrics(self, values: Mapping[str, float]) -> None:
        """Record figures as of now."""
        if self._recorder is not None:
            self._recorder.metrics(values)

    def report(self, document: object) -> None:
        """Record the command's answer, as the artifact report.json."""
        if self._recorder is not None:
            self._recorder.text("report.json", json.dumps(document, indent=2, default=str))

    def close(self, status: str, seconds: float) -> None:
        """End the run."""
        if self._recorder is not None:
            self._recorder.close(status, seconds)

    def _figures(self) -> dict[str, float]:
        """The meter's figures since the last call, CPU of this process and children, and totals."""
        now, cpu = time.monotonic(), _cpu()
        seconds = max(now - self._read_at, 0.001)
        figures = self._meter.take(seconds)
        if cpu:
            figures["cpu_cores"] = (cpu - self._cpu) / seconds
            figures["cpu_seconds"] = cpu - self._cpu_began
        figures["records"] = self._meter.records
        figures["seconds"] = now - self._began
        self._read_at, self._cpu = now, cpu
        return figures


def tracked(
    topology: Topology,
    command: str,
    params: Mapping[str, str],
    figures: bool = False,
    tick: float = TICK_SECONDS,
) -> AbstractContextManager[Tracked]:
    """Record the block as a run of a topology; `figures`: also a replicator's figures over time."""
    facts = {"topology_sha256": topology_hash(topology), **params}
    texts = {"topology.redacted.yml": yaml.safe_dump(redacted(topology), sort_keys=False)}
    directory, tracking = lake_directory(topology), topology.tracking
    return _recorded(
        tracking,
        directory,
        command,
        facts,
        texts=texts,
        figures=figures,
        tick=tick,
        close_seconds=CLOSE_SECONDS,
    )


def tracked_at(
    directory: Path, command: str, params: Mapping[str, str]
) -> AbstractContextManager[Tracked]:
    """Record the block as a run, and wait for it: for commands without a topology file."""
    return _recorded(Tracking(), directory, command, params, close_seconds=MAKE_SECONDS)


@contextmanager
def _recorded(
    tracking: Tracking,
    directory: Path | None,
    command: str,
    params: Mapping[str, str],
    *,
    texts: Mapping[str, str] | None = None,
    figures: bool = False,
    tick: float = TICK_SECONDS,
    close_seconds: float,
) -> Iterator[Tracked]:
    run = Tracked()
    if check_wanted(tracking):
        name = f"{command} {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())}"
        params = {"command": command, **versions(), **params}
        begin = Begin(name, {"mirrorlake.command": command}, params, texts or {})
        run.start(tracking, directory, begin, figures, tick)
    status = "FAILED"
    try:
        yield run
        status = "FINISHED"
    except (KeyboardInterrupt, SystemExit):
        status = "KILLED"
        raise
    finally:
        run.close(status, close_seconds)


def check_wanted(tracking: Tracking) -> bool:
    """Whether to record runs: yes if MLflow is installed, unless the user has disabled it.

    Raises MissingExtra if it is not installed and the topology file has a `tracking` setting.
    """
    if not tracking.enabled or os.environ.get(SWITCH, "").lower() == "off":
        return False
    if installed("tracking"):
        return True
    if tracking.model_fields_set:
        raise missing("tracking")
    logger.info(
        "this run is not recorded: MLflow is not installed (pip install 'mirrorlake[tracking]')"
    )
    return False


def versions() -> dict[str, str]:
    """The versions of packages, Python and Delta, and the machine's cores."""
    known = {name.replace("-", "_"): _version(name) for name in _PACKAGES}
    # that of the jar of our own session
    known["delta_spark"] = None if session_is_given() else DELTA_VERSION
    known |= {"python": platform.python_version(), "machine_cores": str(os.cpu_count())}
    return {name: version for name, version in known.items() if version is not None}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None  # an extra that this run does not need


def spark_facts(spark: "SparkSession") -> dict[str, str]:
    """The settings of a session that matter when comparing runs; `cores` if its master is local."""
    facts = {name: value for name in _SPARK if (value := spark.conf.get(name, None)) is not None}
    master = facts.get("spark.master", "")
    if master.startswith("local"):
        named = master.partition("[")[2].partition(",")[0].rstrip("]") or "1"
        facts["cores"] = str(os.cpu_count()) if named == "*" else named
    return facts


def lake_directory(topology: Topology) -> Path | None:
    """The directory of a local lake; None for a catalog or a URL."""
    path = topology.lake.path
    return None if path is None or "://" in path else topology.directory / path


def _cpu() -> float:
    """CPU seconds of this process, its JVM and its workers; 0 if they cannot be measured."""
    if sys.platform != "linux" or "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return 0.0
    with suppress(ModuleNotFoundError):
        from mirrorlake.processes import cpu_seconds

        return cpu_seconds([os.getpid()])
    return 0.0


def record_bench(document: Mapping[str, Any], directory: Path) -> None:
    """Record the document of `run_bench` beside its file, or at MLFLOW_TRACKING_URI."""
    machine = {name: str(value) for name, value in document["machine"].items()}
    with tracked_at(directory, "bench", {**machine, "at": document["at"]}) as tracking:
        tracking.metrics(bench_metrics(document))
        tracking.report(document)


def bench_metrics(document: Mapping[str, Any]) -> dict[str, float]:
    """The figures of all contestants by contestant/figure: mirrorlake/1024/records_per_second."""
    metrics: dict[str, float] = {"seconds": document["seconds"]}
    for size, part in document.get("throughput", {}).items():
        for name, run in part["contestants"].items():
            metrics.update({f"{name}/{size}/{figure}": run[figure] for figure in _THROUGHPUT})
    for name, run in document.get("latency", {}).get("contestants", {}).items():
        metrics.update(
            {f"{name}/latency_{label}_ms": run[f"{label}_ms"] for label in ("p50", "p95", "p99")}
        )
    for name, feel in document.get("feel", {}).items():
        figures = ("start_new_seconds", "start_again_seconds", "idle_cores")
        metrics.update({f"{name}/{figure}": feel[figure] for figure in figures})
    for name, value in document.get("control", {}).items():
        metrics[f"control/{name}"] = value
    return metrics
