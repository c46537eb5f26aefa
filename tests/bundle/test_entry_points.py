"""The jobs' entry points, run here as a wheel task runs them, with exactly the parameters that the
bundle gives."""

import json
import signal
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.bundle import resources
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, write
from tests.support.lake_rows import append, opened, run_row, sample, staged, write_file
from tests.support.replication import QUIET

pytestmark = pytest.mark.slow

DAY = 86_400
VOLUME = "/Volumes/main/replication/files/"


def task_of(job: str) -> dict[str, Any]:
    (task,) = resources()["jobs"][job]["tasks"]
    found: dict[str, Any] = task["python_wheel_task"]
    return found


def run_as_wheel_task(
    monkeypatch: pytest.MonkeyPatch, job: str, volume: Path, **given: str
) -> None:
    """Call the entry point as the runtime does: by its name, in this process, parameters in
    sys.argv, those of the run filled in. A wheel task fails on any exception, SystemExit(0) among
    them."""
    task = task_of(job)
    run = {
        item["name"]: item["default"] for item in resources()["jobs"][job].get("parameters", [])
    } | given
    (entry,) = entry_points(group="console_scripts", name=task["entry_point"])
    assert any(item.startswith(VOLUME) for item in task["parameters"])
    parameters = [item.replace(VOLUME, f"{volume}/") for item in task["parameters"]]
    parameters = [
        run[parameter[17:-2]] if parameter.startswith("{{job.parameters.") else parameter
        for parameter in parameters
    ]
    monkeypatch.setattr(sys, "argv", [task["package_name"], *parameters])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        entry.load()()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def catalog(directory: Path, name: str) -> dict[str, str]:
    return {
        "catalog": "spark_catalog",
        "schema": name,
        "checkpoints": str(directory / "checkpoints"),
    }


def test_maintain(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = write_file(
        tmp_path, lake=catalog(tmp_path, "entry_maintain"), maintain={"retention_days": 7}
    )
    lake, _ = opened(spark, file)
    append(lake, "records", staged(range(100), 30 * DAY))
    append(lake, "offset_map", [run_row(0, 99)])
    run_as_wheel_task(monkeypatch, "maintain", tmp_path)
    assert json.loads(capsys.readouterr().out)["records"]["removed"] == 99
    assert lake.table("records").count() == 1


def test_wrong_input_fails_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mirrorlake.yml").write_text("flows: [", encoding="utf-8")
    for job in ("replicate", "replicate_scheduled", "maintain", "command"):
        with pytest.raises(
            SystemExit, match=r"exit code 2, .*mirrorlake\.yml is not valid YAML"
        ) as end:
            run_as_wheel_task(monkeypatch, job, tmp_path)
        assert end.value.code == 2


def test_command_answers_about_a_catalog(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Healthy is a run that succeeds; somebody who has to look is a run that fails, with its answer
    in the output."""
    file = write_file(tmp_path, lake=catalog(tmp_path, "entry_command"))
    lake, _ = opened(spark, file)
    append(lake, "records", staged(range(10), 60))
    append(lake, "offset_map", [run_row(0, 9)])
    append(lake, "positions", [sample(60, 10, 10)])
    said = "--flow east->west --topic orders --partition 0 --offset 4 --json"
    run_as_wheel_task(monkeypatch, "command", tmp_path, command="translate", arguments=said)
    assert json.loads(capsys.readouterr().out)["offset"] == 4
    run_as_wheel_task(
        monkeypatch, "command", tmp_path, command="sql", arguments="'SELECT 1 + 1 AS two' --json"
    )
    assert json.loads(capsys.readouterr().out) == [{"two": 2}]
    run_as_wheel_task(
        monkeypatch, "command", tmp_path, command="divergence", arguments="--flow east->west"
    )
    append(lake, "records", staged(range(10, 13), 60))
    with pytest.raises(SystemExit, match="exit code 1, the replication needs attention") as end:
        run_as_wheel_task(
            monkeypatch, "command", tmp_path, command="divergence", arguments="--flow east->west"
        )
    assert end.value.code == 1
    assert "only in the lake" in capsys.readouterr().out


def test_replicate_scheduled(
    spark: SparkSession,
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_topic(clusters.east, topic_name, 2)
    write(
        clusters.east,
        topic_name,
        [NewRecord(b"v", b"k", partition) for partition in (0, 1) for _ in range(50)],
    )
    addresses = {
        alias: {"bootstrap_servers": getattr(clusters, alias)} for alias in ("east", "west")
    }
    flows = {
        "east->west": {**QUIET, "topics": [topic_name], "heartbeats_replication_enabled": False}
    }
    file = write_file(
        tmp_path, clusters=addresses, flows=flows, lake=catalog(tmp_path, "entry_once")
    )
    run_as_wheel_task(monkeypatch, "replicate_scheduled", tmp_path)
    lake, _ = opened(spark, file)
    assert lake.sql("SELECT sum(record_count) AS n FROM offset_map").collect()[0]["n"] == 100
    monkeypatch.setattr(sys, "argv", ["mirrorlake", "-c", str(file), "status"])
    (entry,) = entry_points(group="console_scripts", name="mirrorlake")
    entry.load()()
