"""Runs recorded with MLflow's own store: what is in them, what must not be, and servers that are
down or silent."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.config.metrics import Tracking
from mirrorlake.config.topology import Topology, load_topology
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.samples import FlowLag
from mirrorlake.tracking import runs as runs_module
from mirrorlake.tracking.runs import CLOSE_SECONDS, SWITCH, lake_directory, record_bench, tracked
from mirrorlake.tracking.store import MlflowStore, described, open_store, place_of
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.replication import FLOW, finish, start_run, write_topology

pytestmark = pytest.mark.slow

#: What a loaded machine may take longer, seconds: less than MLflow's own patience with a server
#: that does not answer, which is minutes.
LOADED_SECONDS = 45.0

SECRET = "hunter-2026"


@pytest.fixture(autouse=True)
def recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "on")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first store of a process costs an import and a new database: a loaded machine may need
    longer than an end waits."""
    monkeypatch.setattr(runs_module, "CLOSE_SECONDS", 240.0)


def topology_in(directory: Path, tracking: dict[str, object] | None = None) -> Topology:
    security = {
        "protocol": "SASL_SSL",
        "mechanism": "PLAIN",
        "username": "mirror",
        "password": SECRET,
    }
    document = {
        "clusters": {
            "east": {"bootstrap_servers": "127.0.0.1:1", "security": security},
            "west": {"bootstrap_servers": "127.0.0.1:2"},
        },
        "lake": {"path": "./lake"},
        "flows": {FLOW: {"topics": ["orders"]}},
        **({} if tracking is None else {"tracking": tracking}),
    }
    path = directory / "mirrorlake.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load_topology(path)


def store_of(topology: Topology) -> MlflowStore:
    return open_store(topology.tracking, lake_directory(topology))


def texts_below(directory: Path) -> str:
    """Everything that a store left in files."""
    return "".join(
        path.read_bytes().decode(errors="replace")
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    )


def test_a_run_is_recorded_beside_the_lake_without_secrets(tmp_path: Path, patient: None) -> None:
    topology = topology_in(tmp_path)
    with tracked(topology, "run", {"flows": FLOW}, figures=True, tick=0.2) as tracking:
        tracking.batch(
            FLOW,
            BatchReport(
                1,
                stage_version=1,
                record_count=500,
                reader="files",
                complete=True,
                replication_ms=(5, 7, 9),
            ),
        )
        tracking.sampled(FLOW, FlowLag(12, 1.5))
        tracking.report({"flows": {FLOW: {"records": 500}}})
    store = store_of(topology)
    (run,) = store.runs()
    assert run.info.status == "FINISHED"
    assert run.data.tags["mirrorlake.command"] == "run"
    assert run.data.params["flows"] == FLOW and len(run.data.params["topology_sha256"]) == 64
    assert {
        "mirrorlake",
        "pyspark",
        "delta_spark",
        "confluent_kafka",
        "python",
    } <= run.data.params.keys()
    assert run.data.metrics["records"] == 500 and run.data.metrics["east-to-west/lag_records"] == 12
    p99 = store.history(run.info.run_id, "east-to-west/latency_p99_ms")
    assert [value for _, value in p99] == [9.0]
    artifacts = {path.name: path for path in (tmp_path / "lake").rglob("artifacts/*/artifacts/*")}
    assert artifacts.keys() == {"topology.redacted.yml", "report.json"}
    assert json.loads(artifacts["report.json"].read_text())["flows"][FLOW]["records"] == 500
    assert "(hidden)" in artifacts["topology.redacted.yml"].read_text()
    assert SECRET not in texts_below(tmp_path / "lake")


def test_a_command_that_fails_is_a_run_that_failed(tmp_path: Path, patient: None) -> None:
    topology = topology_in(tmp_path)
    with (
        pytest.raises(ValueError, match="as it was"),
        tracked(topology, "failover", {"flow": FLOW}),
    ):
        raise ValueError("as it was")
    with tracked(topology, "failback", {"flow": FLOW}) as tracking:
        tracking.metrics({"left": 0})
    after, before = store_of(topology).runs()
    assert (before.info.status, before.data.tags["mirrorlake.command"]) == ("FAILED", "failover")
    assert (after.info.status, after.data.metrics) == ("FINISHED", {"left": 0.0})


def test_a_benchmark_is_recorded_beside_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However little other commands wait for it: it is over, and its figures are what it was
    for."""
    monkeypatch.setattr(runs_module, "CLOSE_SECONDS", 0.0)
    throughput = {"records_per_second": 1000.0, "cpu_seconds_per_million": 20.0, "seconds": 5.0}
    document = {
        "at": "2026-11-01T00:00:00",
        "machine": {"cores": 2, "pyspark": "4.0.5"},
        "throughput": {
            "1024": {
                "records": 5,
                "contestants": {"mirrorlake": throughput, "mirrormaker2": throughput},
            }
        },
        "latency": {"contestants": {"mirrorlake": {"p50_ms": 5.0, "p95_ms": 6.0, "p99_ms": 7.0}}},
        "seconds": 60.0,
    }
    record_bench(document, tmp_path)
    (run,) = open_store(Tracking(), tmp_path).runs()
    assert run.info.status == "FINISHED"
    assert run.data.params["cores"] == "2" and run.data.params["command"] == "bench"
    assert run.data.metrics["mirrorlake/1024/cpu_seconds_per_million"] == 20.0
    assert run.data.metrics["mirrorlake/latency_p99_ms"] == 7.0


def test_a_process_that_is_killed_while_it_makes_the_database_leaves_none_behind(
    tmp_path: Path,
) -> None:
    """MLflow commits each of its tables: half of them are a database that nothing can open."""
    code = "import sys; from pathlib import Path; from mirrorlake.config.metrics import Tracking; "
    code += "from mirrorlake.tracking.store import open_store; "
    code += "open_store(Tracking(), Path(sys.argv[1]))"
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    try:
        while process.poll() is None:
            if any(path.stat().st_size for path in tmp_path.rglob("mlflow.db")):
                break
            time.sleep(0.002)
    finally:
        process.kill()
        process.wait()
    assert not (tmp_path / "_mlflow" / "mlflow.db").exists()
    assert open_store(Tracking(), tmp_path).runs() == []
    assert (tmp_path / "_mlflow" / "mlflow.db").exists()


@contextmanager
def silent_server() -> Iterator[int]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
    for item in kept:
        item.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("kind", ["down", "silent"])
def test_a_server_that_is_away_costs_some_seconds_at_most(tmp_path: Path, kind: str) -> None:
    """In a process of its own: it must end too, whatever MLflow's threads are waiting for."""
    with silent_server() as port:
        port = port if kind == "silent" else free_port()
        topology_in(tmp_path, {"uri": f"http://me:{SECRET}@127.0.0.1:{port}"})
        script = f"""
import sys, time
from pathlib import Path
from mirrorlake.config.topology import load_topology
from mirrorlake.tracking.runs import tracked
topology = load_topology(Path({str(tmp_path / "mirrorlake.yml")!r}))
with tracked(topology, "run", {{}}, figures=True, tick=0.05) as tracking:
    began = time.monotonic()
    for number in range(5000):
        tracking.metrics({{"n": number}})
    took = time.monotonic() - began
    time.sleep(2)
    closing = time.monotonic()
sys.stdout.write(f"{{took}} {{time.monotonic() - closing}}")
"""
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            timeout=240,
            env=dict(os.environ),
        )
    assert done.returncode == 0, done.stderr
    took, closing = map(float, done.stdout.split())
    assert took < LOADED_SECONDS, "what is handed over is never waited for"
    assert closing < CLOSE_SECONDS + LOADED_SECONDS
    warnings = [line for line in done.stderr.splitlines() if "not recorded in full" in line]
    assert len(warnings) == 1 and f"http://127.0.0.1:{port}" in warnings[0]
    assert SECRET not in done.stderr


def test_switched_off_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for topology in (topology_in(tmp_path, {"enabled": False}), topology_in(tmp_path)):
        with tracked(topology, "run", {}, figures=True) as tracking:
            tracking.batch(FLOW, BatchReport(1, 1, 500, "files", True))
            tracking.report({})
        monkeypatch.setenv(SWITCH, "off")
    assert not (tmp_path / "lake").exists()


def test_where_runs_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place_of(Tracking(), tmp_path)[0] == f"sqlite:///{tmp_path}/_mlflow/mlflow.db"
    assert place_of(Tracking(), None)[0] == "databricks", "a lake in a catalog"
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.3")
    assert place_of(Tracking(), tmp_path)[0] == "databricks"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://server:5000")
    assert place_of(Tracking(), tmp_path) == ("http://server:5000", None)
    monkeypatch.setenv("MLFLOW_PASSWORD_OF_TEST", SECRET)
    mine = Tracking(uri="https://me:${env:MLFLOW_PASSWORD_OF_TEST}@server:5000/x")
    assert place_of(mine, tmp_path) == (f"https://me:{SECRET}@server:5000/x", None)
    assert SECRET not in described(mine, tmp_path)


def test_commands_that_record_nothing_import_no_mlflow() -> None:
    script = "import sys, mirrorlake.cli.main; sys.exit('mlflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=240).returncode == 0


def test_a_server_that_is_down_does_not_delay_a_run(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    topology = with_records(clusters, topic_name, tmp_path)
    plain = yaml.safe_load(topology.read_text())
    seconds = {}
    for kind, tracking in {
        "off": {"enabled": False},
        "down": {"uri": f"http://127.0.0.1:{free_port()}"},
    }.items():
        topology.write_text(yaml.safe_dump({**plain, "tracking": tracking}))
        began = time.monotonic()
        log = (tmp_path / "run.log").stat().st_size if kind != "off" else 0
        assert finish(start_run(topology, "--once", **{SWITCH: "on"})) == 0, (
            tmp_path / "run.log"
        ).read_text()
        seconds[kind] = time.monotonic() - began
        said = (tmp_path / "run.log").read_text()[log:]
        assert len(re.findall("not recorded", " ".join(said.split()))) == (kind == "down"), said
    assert seconds["down"] < 2 * seconds["off"] + CLOSE_SECONDS + LOADED_SECONDS, seconds


def test_run_once_is_recorded(
    clusters: ClusterPair, topic_name: str, tmp_path: Path, patient: None
) -> None:
    topology = with_records(clusters, topic_name, tmp_path)
    # The session of the tests before this one, in whose process it may run.
    session = SparkSession.getActiveSession()
    done = CliRunner().invoke(app, ["-c", str(topology), "run", "--once"])
    assert done.exit_code == 0, done.output
    (run,) = store_of(load_topology(topology)).runs()
    assert run.info.status == "FINISHED" and run.data.params["once"] == "true"
    assert session or "spark.master" not in run.data.params, "so few records need no session"
    assert run.data.metrics["east-to-west/lag_records"] == 0 and "cpu_seconds" in run.data.metrics


def with_records(clusters: ClusterPair, topic: str, directory: Path) -> Path:
    """A topology whose one topic has some records."""
    create_topic(clusters.east, topic)
    write(clusters.east, topic, numbered(500))
    return write_topology(directory, clusters.east, clusters.west, {"topics": [topic]})
