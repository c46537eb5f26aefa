"""The asset bundle: what Databricks' own library says of each resource, and what nothing else would
catch."""

import configparser
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
import sqlglot
import typer
from databricks.bundles.alerts import Alert
from databricks.bundles.dashboards import Dashboard
from databricks.bundles.jobs import Job
from databricks.bundles.schemas import Schema
from databricks.bundles.secret_scopes import SecretScope
from databricks.bundles.volumes import Volume
from packaging.requirements import Requirement
from sqlglot import exp

from hatch_build import COMPILED
from mirrorlake.cli.main import app
from mirrorlake.cli.overview import words_of
from mirrorlake.lake.definitions import TABLES, VIEWS, view_query
from mirrorlake.spark.session import LOCAL_SETTINGS
from tests.support.bundle import (
    ROOT,
    build_environment,
    raw_resources,
    resource_files,
    resources,
    root_file,
    strings,
)

KINDS: dict[str, Any] = {
    "jobs": Job,
    "schemas": Schema,
    "volumes": Volume,
    "dashboards": Dashboard,
    "alerts": Alert,
    "secret_scopes": SecretScope,
}
ALL = [(kind, key) for kind, items in raw_resources().items() for key in items]
JOBS = list(raw_resources()["jobs"])
#: The jobs that run by themselves; `command` is started by somebody, who sees how it ends.
BY_THEMSELVES = [job for job in JOBS if job != "command"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that a deployment would upload."""
    script = [sys.executable, str(ROOT / "bundles" / "build_wheel.py")]
    subprocess.run(script, check=True, env=build_environment(), capture_output=True, timeout=300)
    (found,) = (ROOT / "dist" / "databricks").glob("*.whl")
    return found


@pytest.mark.parametrize("target", ["dev", "prod"])
@pytest.mark.parametrize(("kind", "key"), ALL)
def test_each_resource_is_one_that_databricks_knows(kind: str, key: str, target: str) -> None:
    KINDS[kind].from_dict(resources(target)[kind][key])
    KINDS[kind].from_dict(raw_resources()[kind][key])


def test_the_loader_refuses_what_is_wrong() -> None:
    job = resources()["jobs"]["replicate"]
    with pytest.raises((ValueError, TypeError)):
        Job.from_dict({**job, "max_concurent_runs": 1})


def test_files_are_named_for_what_they_hold() -> None:
    for path, document in resource_files().items():
        assert list(document) == ["resources"] and len(document["resources"]) == 1
        (kind,) = document["resources"]
        name, of, _ = path.name.split(".")
        assert of in (kind.removesuffix("s"), kind)
        assert name in document["resources"][kind] or len(document["resources"][kind]) > 1


def test_every_reference_refers_to_something_and_every_variable_is_used() -> None:
    filled = resources()
    assert not [text for text in strings(filled) if "${" in text]
    assert not [text for text in strings(resources("dev")) if "${" in text]
    written = json.dumps([root_file(), raw_resources()])
    for name, variable in root_file()["variables"].items():
        assert f"${{var.{name}}}" in written, name
        assert variable["description"]


def test_no_workspace_is_named() -> None:
    written = "".join(path.read_text() for path in [ROOT / "databricks.yml", *resource_files()])
    assert not re.search(
        r"https?://|azuredatabricks|cloud\.databricks|@(?!example)\w+\.\w+", written
    )


@pytest.mark.parametrize("key", JOBS)
def test_jobs_hold_together(key: str) -> None:
    job = resources()["jobs"][key]
    tasks = [task["task_key"] for task in job["tasks"]]
    clusters = [cluster["job_cluster_key"] for cluster in job["job_clusters"]]
    assert len(set(tasks)) == len(tasks) and len(set(clusters)) == len(clusters)
    for task in job["tasks"]:
        assert task["job_cluster_key"] in clusters and "environment_key" not in task
        assert all(before["task_key"] in tasks for before in task.get("depends_on", []))
    assert job["max_concurrent_runs"] == 1, "development would make it 4"
    begun_by = [name for name in ("continuous", "schedule", "trigger") if name in job]
    assert len(begun_by) == (key in BY_THEMSELVES)
    assert "pause_status" not in job.get("continuous", {}), (
        "paused in development, running in production"
    )
    assert ("on_failure" in job.get("email_notifications", {})) is (key in BY_THEMSELVES)
    assert {grant["level"] for grant in job["permissions"]} == {"CAN_MANAGE_RUN", "CAN_VIEW"}


def test_a_late_rule_is_told_to_somebody() -> None:
    told = {"RUN_DURATION_SECONDS": "on_duration_warning_threshold_exceeded"}
    for key in BY_THEMSELVES:
        job = resources()["jobs"][key]
        for rule in job["health"]["rules"]:
            assert job["email_notifications"][
                told.get(rule["metric"], "on_streaming_backlog_exceeded")
            ]


def test_at_most_one_of_the_replicating_jobs_runs_by_itself() -> None:
    jobs = resources()["jobs"]
    assert jobs["replicate_scheduled"]["schedule"]["pause_status"] == "PAUSED"


def test_schedules_are_quartz() -> None:
    found = [
        job["schedule"]["quartz_cron_expression"]
        for job in resources()["jobs"].values()
        if "schedule" in job
    ]
    found += [alert["schedule"]["quartz_cron_schedule"] for alert in resources()["alerts"].values()]
    for text in found:
        fields = text.split(" ")
        assert len(fields) in (6, 7) and "?" in (fields[3], fields[5])
        for field, most in zip(fields[:3], (59, 59, 23), strict=True):
            assert re.fullmatch(r"\*|\d+(/\d+)?", field) and all(
                int(n) <= most for n in re.findall(r"\d+", field)
            )


def test_compute_is_dedicated_and_has_the_settings_that_matter() -> None:
    for job in resources()["jobs"].values():
        cluster = job["job_clusters"][0]["new_cluster"]
        assert cluster["data_security_mode"] == "DATA_SECURITY_MODE_DEDICATED"
        assert "autoscale" not in cluster
        for name, value in cluster["spark_conf"].items():
            assert LOCAL_SETTINGS[name] == value, name
        assert cluster["spark_version"].startswith("17.3."), "an LTS, with Spark 4.0"


def test_paths_exist() -> None:
    for path, document in resource_files().items():
        for text in strings(document):
            if text.startswith(("../", "./", "dashboards/")) and "*" not in text:
                assert (path.parent / text).is_file(), text
    for job in resources()["jobs"].values():
        for task in job["tasks"]:
            wheels = [item["whl"] for item in task["libraries"] if "whl" in item]
            assert wheels == ["../dist/databricks/*.whl"]
    (artifact,) = root_file()["artifacts"].values()
    assert [item["source"] for item in artifact["files"]] == ["dist/databricks/*.whl"]
    assert (ROOT / artifact["build"].split()[-1]).is_file()


def test_jobs_have_what_a_lake_at_a_url_takes() -> None:
    """The wheel is installed without extras."""
    extras = ("extra == 'stores'", "extra == 'unity'")
    lines = [line for line in requires("mirrorlake") or () if line.endswith(extras)]
    wanted = {(each.name, each.specifier) for each in map(Requirement, lines)}
    for job in resources()["jobs"].values():
        for task in job["tasks"]:
            texts = [item["pypi"]["package"] for item in task["libraries"] if "pypi" in item]
            assert {(each.name, each.specifier) for each in map(Requirement, texts)} == wanted


def test_the_dashboard_is_one() -> None:
    for item in resources()["dashboards"].values():
        document = json.loads((ROOT / "bundles" / item["file_path"]).read_text(encoding="utf-8"))
        assert document["datasets"] and document["pages"]


def test_the_wheel_has_its_entry_points_and_does_not_replace_the_runtime(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        entry_points = configparser.ConfigParser()
        entry_points.read_string(file.read(_one(names, "entry_points.txt")).decode())
        metadata = file.read(_one(names, "METADATA")).decode()
        record = file.read(_one(names, "RECORD")).decode()
        assert file.testzip() is None
    for job in resources()["jobs"].values():
        for task in job["tasks"]:
            called = task["python_wheel_task"]
            assert f"\nName: {called['package_name']}\n" in metadata
            assert called["entry_point"] in entry_points["console_scripts"]
    required = re.findall(r"^Requires-Dist: ([\w-]+)[^;]*$", metadata, re.M)
    assert "confluent-kafka" in required and not {"pyspark", "pandas", "mlflow-skinny"} & set(
        required
    )
    assert names == {line.split(",")[0] for line in record.splitlines()}
    assert {f"mirrorlake/sql/views/{view}.sql" for view in VIEWS} <= names
    assert {f"mirrorlake/native/{file.name}" for file in COMPILED} <= names, (
        "a cluster may be of any of these platforms"
    )


def _one(names: set[str], ending: str) -> str:
    (found,) = (name for name in names if name.endswith(f".dist-info/{ending}"))
    return found


def test_the_notebooks_install_the_wheel_of_the_jobs(wheel: Path) -> None:
    """By its place among a deployment's artifacts, seen from where a deployment puts the
    notebooks."""
    lines = (ROOT / "notebooks" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        f"../../artifacts/.internal/{wheel.name}[dashboard]"
    ]


def test_building_the_wheel_again_gives_the_same_bytes(wheel: Path) -> None:
    before = wheel.read_bytes()
    script = [sys.executable, str(ROOT / "bundles" / "build_wheel.py")]
    subprocess.run(script, check=True, env=build_environment(), capture_output=True, timeout=300)
    assert wheel.read_bytes() == before


def test_one_alert_asks_the_view_once_and_repeats_no_threshold() -> None:
    """Each alert is a query of its own, and wakes the warehouse by itself."""
    (alert,) = resources()["alerts"].values()
    query = " ".join(alert["query_text"].split())
    assert query.endswith("FROM `main`.`replication`.alerts ORDER BY alert, flow, topic, partition")
    assert "WHERE" not in query and not re.search(r"\d", query), (
        "all kinds of rows, and no threshold"
    )
    evaluation = alert["evaluation"]
    assert evaluation["source"] == {"name": "alerts", "display": "alerts", "aggregation": "MAX"}
    assert evaluation["comparison_operator"] == "GREATER_THAN_OR_EQUAL"
    assert evaluation["threshold"] == {"value": {"double_value": 1}}
    assert evaluation["empty_result_state"] == "OK", "no row is what is hoped for"
    assert "{{QUERY_RESULT_TABLE}}" in alert["custom_description"], (
        "the mail says what holds, not only how much"
    )


def test_the_alert_names_columns_of_the_view() -> None:
    (alert,) = resources()["alerts"].values()
    (asked,) = sqlglot.parse(alert["query_text"], read="databricks")
    (view,) = sqlglot.parse(view_query("alerts"), read="databricks")
    assert isinstance(asked, exp.Select) and isinstance(view, exp.Query)
    assert asked.named_selects[0] == "alerts"
    assert sorted(asked.named_selects[1:]) == sorted(view.named_selects)


def test_the_alert_lets_the_warehouse_sleep() -> None:
    schedule = resources()["alerts"]["attention"]["schedule"]
    assert schedule == {"quartz_cron_schedule": "0 0/30 * * * ?", "timezone_id": "UTC"}
    given = resources(alert_schedule="0 0/5 * * * ?")["alerts"]["attention"]["schedule"]
    assert given["quartz_cron_schedule"] == "0 0/5 * * * ?"


def commands() -> Iterator[tuple[str, list[str]]]:
    """(job, parameters) of each task."""
    for key, job in resources()["jobs"].items():
        for task in job["tasks"]:
            yield key, task["python_wheel_task"]["parameters"]


def test_a_command_gets_what_the_run_was_given() -> None:
    """The parameters are the run's own, each one text; a dash that one begins with makes it no
    option."""
    job = resources()["jobs"]["command"]
    assert job["parameters"] == [
        {"name": "command", "default": "status"},
        {"name": "arguments", "default": ""},
    ]
    (task,) = job["tasks"]
    named = [f"{{{{job.parameters.{item['name']}}}}}" for item in job["parameters"]]
    assert task["python_wheel_task"]["parameters"][2:] == ["command", "--", *named]
    assert job["queue"] == {"enabled": True} and "schedule" not in job


def examples() -> Iterator[tuple[str, str]]:
    """(command, arguments) of the tables that say what to type into the job's page, and the
    notebook's."""
    for page in (ROOT / "docs" / "databricks.md", ROOT / "notebooks" / "08_command.py"):
        _, _, behind = page.read_text(encoding="utf-8").partition("| `command` | `arguments` |")
        rows = re.findall(r"^(?:# MAGIC )?\| `([a-z]+)` \| (?:`(.*?)`)? ?\|", behind, re.M)
        assert len(rows) >= 6, page
        yield from rows


@pytest.mark.parametrize(("command", "arguments"), examples())
def test_the_examples_can_be_typed(command: str, arguments: str) -> None:
    name, *options = words_of(f"{command} {arguments}")
    typer.main.get_command(app).commands[name].make_context(name, options)  # type: ignore[attr-defined]


def test_replicating_waits_for_its_file() -> None:
    (task,) = resources()["jobs"]["replicate"]["tasks"]
    assert task["python_wheel_task"]["parameters"][2:] == ["run", "--register", "--wait-for-config"]


def test_what_replicates_registers_before() -> None:
    """A continuous job has one task, so that a task before it can be none."""
    for job in ("replicate", "replicate_scheduled"):
        (task,) = resources()["jobs"][job]["tasks"]
        assert task["python_wheel_task"]["parameters"][2:4] == ["run", "--register"]


@pytest.mark.parametrize(
    "run_as",
    [None, {"service_principal_name": "00000000-1111-2222-3333-444444444444"}],
    ids=["deployer", "principal"],
)
def test_all_that_runs_runs_as_one(run_as: dict[str, str] | None) -> None:
    """Whoever makes the views has to be who alters them."""
    found = resources() if run_as is None else resources(run_as=run_as)
    wanted = run_as or {"user_name": "somebody@example.com"}
    assert [item["run_as"] for kind in ("jobs", "alerts") for item in found[kind].values()] == [
        wanted
    ] * 5


def test_targets_share_no_secret_scope() -> None:
    """Scopes belong to the workspace: a target that is destroyed would take the other's passwords
    with it."""
    names = {
        target: resources(target)["secret_scopes"]["kafka"]["name"] for target in ("dev", "prod")
    }
    assert names == {"dev": "mirrorlake-dev-somebody", "prod": "mirrorlake-prod"}


def test_production_is_not_destroyed_by_the_way() -> None:
    kept = {
        f"{kind}.{key}"
        for kind, items in resources("prod").items()
        for key, item in items.items()
        if item.get("lifecycle") == {"prevent_destroy": True}
    }
    assert kept == {"schemas.lake", "volumes.files", "secret_scopes.kafka"}
    assert not [
        item
        for items in resources("dev").values()
        for item in items.values()
        if "lifecycle" in item
    ]


@pytest.mark.parametrize(("job", "parameters"), commands())
def test_parameters_are_a_command_of_ours(job: str, parameters: list[str]) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    option, file, name, *rest = parameters
    assert (option, file) == ("-c", "/Volumes/main/replication/files/mirrorlake.yml")
    commands[name].make_context(name, rest)


def test_grants_and_groups_are_the_teams() -> None:
    principals = set()
    for kind in ("schemas", "volumes"):
        for item in resources()[kind].values():
            principals |= {grant["principal"] for grant in item["grants"]}
    assert principals == {"replication-readers", "replication-operators"}
    (scope,) = resources()["secret_scopes"].values()
    assert [item["group_name"] for item in scope["permissions"]] == ["replication-operators"]


def test_production_says_where_it_lives() -> None:
    prod = root_file()["targets"]["prod"]
    assert prod["mode"] == "production" and prod["workspace"]["root_path"]
    assert len(TABLES) == len(set(TABLES))


def test_keys_are_unique_over_all_kinds() -> None:
    assert len({key for _, key in ALL}) == len(ALL), (
        "the CLI refuses a dashboard and a schema of one key"
    )
