"""The bundle deployed by the real Databricks CLI into a fake workspace, and taken away again.

The CLI is not part of this repository: `databricks` on PATH, or the program that DATABRICKS_CLI
names.
"""

import json
import os
import posixpath
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest

from tests.support.bundle import GIVEN, ROOT, build_environment, clone_in, resources
from tests.support.fake_workspace import FakeWorkspace, fake_workspace

CLI = os.environ.get("DATABRICKS_CLI") or shutil.which("databricks")
pytestmark = pytest.mark.skipif(
    CLI is None,
    reason="no Databricks CLI here: put `databricks` on PATH, or name it by DATABRICKS_CLI",
)


@dataclass(frozen=True)
class Deployment:
    """One target of the bundle, in a copy of the repository and a workspace of its own."""

    target: str
    directory: Path
    workspace: FakeWorkspace
    environment: dict[str, str]

    def run(self, *words: str, code: int = 0) -> str:
        """`databricks bundle …`; gives what it prints to stdout."""
        command = [str(CLI), "bundle", *words, "-t", self.target]
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        assert not self.workspace.unknown, self.workspace.unknown
        return done.stdout


@pytest.fixture(params=["dev", "prod"])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    directory = clone_in(tmp_path)
    (tmp_path / "home").mkdir()
    with fake_workspace() as workspace:
        environment = {
            **{
                name: value
                for name, value in build_environment().items()
                if not name.startswith("DATABRICKS_")
            },
            **{f"BUNDLE_VAR_{name}": value for name, value in GIVEN.items()},
            "DATABRICKS_HOST": workspace.url,
            "DATABRICKS_TOKEN": "x",
            "DATABRICKS_BUNDLE_ENGINE": "direct",
            "HOME": str(tmp_path / "home"),
        }
        yield Deployment(request.param, directory, workspace, environment)


def test_deploy_run_and_destroy(deployment: Deployment) -> None:
    deployment.run("validate", "--strict")
    planned = deployment.run("plan")
    made = resources(deployment.target)
    for kind, items in made.items():
        assert all(f"create {kind}.{key}\n" in planned for key in items), planned
    deployment.run("deploy")
    check_jobs(deployment)
    check_wheel(deployment.workspace)
    check_alerts(deployment.workspace)
    check_dashboard(deployment)
    check_notebooks(deployment.workspace)
    assert set(deployment.workspace.scopes) == {made["secret_scopes"]["kafka"]["name"]}
    assert "0 to add, 0 to change, 0 to delete, " in deployment.run("plan")
    summary = json.loads(deployment.run("summary", "--output", "json"))
    assert set(summary["resources"]["jobs"]) == set(made["jobs"])
    deployment.run("run", "maintain", "--no-wait")
    (started,) = deployment.workspace.bodies("POST", "jobs/run-now")
    assert deployment.workspace.jobs[started["job_id"]]["name"].endswith("mirrorlake maintain")
    check_command(deployment)
    if deployment.target == "prod":
        deployment.environment["BUNDLE_VAR_secret_scope"] = "another-name"
        deployment.run("deploy", code=1)
        assert "another-name" not in deployment.workspace.scopes, (
            "it would be deleted under its old name"
        )
        deployment.run("destroy", "--auto-approve", code=1)
        assert deployment.workspace.jobs and deployment.workspace.scopes, "nothing was destroyed"
    else:
        deployment.run("destroy", "--auto-approve")
        assert (
            not deployment.workspace.jobs
            and not deployment.workspace.members
            and not deployment.workspace.scopes
        )


def check_command(deployment: Deployment) -> None:
    """By the CLI, as somebody who has one starts it; the workspace's page sends the same."""
    words = ["--params", "command=failover,arguments=--flow east->west --all-groups --dry-run"]
    deployment.run("run", "command", "--no-wait", *words)
    started = deployment.workspace.bodies("POST", "jobs/run-now")[-1]
    assert deployment.workspace.jobs[started["job_id"]]["name"].endswith("mirrorlake command")
    assert started["job_parameters"] == {
        "command": "failover",
        "arguments": "--flow east->west --all-groups --dry-run",
    }


def check_notebooks(workspace: FakeWorkspace) -> None:
    """What the notebooks install lies where they look for it: among the artifacts, as the jobs'
    wheel does."""
    (folder,) = (
        path.rpartition("/")[0]
        for path in workspace.files
        if path.endswith("/notebooks/requirements.txt")
    )
    listed = (workspace.files[f"{folder}/requirements.txt"] or b"").decode().splitlines()[-1]
    wheel = posixpath.normpath(f"{folder}/{listed}").partition("[")[0]  # extras of it behind that
    assert workspace.files.get(wheel), sorted(workspace.files)


def check_jobs(deployment: Deployment) -> None:
    jobs = {
        str(body["name"]).rsplit(" ", 1)[1]: body
        for body in deployment.workspace.bodies("POST", "jobs/create")
    }
    assert set(jobs) == set(resources()["jobs"])
    dev = deployment.target == "dev"
    for key, job in jobs.items():
        assert job["max_concurrent_runs"] == 1
        assert job["name"].startswith("[dev ") is dev
        (task,) = job["tasks"]
        schema = task["python_wheel_task"]["parameters"][1].split("/")[3]
        assert schema == ("dev_somebody_replication" if dev else "replication")
        command = key if key in ("maintain", "command") else "run"
        assert task["python_wheel_task"]["parameters"][2] == command
        assert job["run_as"] == {"user_name": "somebody@example.com"}
        assert task["libraries"][0]["whl"].endswith("mirrorlake-0.1.0-py3-none-any.whl")
        assert (
            job["job_clusters"][0]["new_cluster"]["data_security_mode"]
            == "DATA_SECURITY_MODE_DEDICATED"
        )
        assert key == "command" or job["email_notifications"]["on_failure"] == [GIVEN["notify"]]
    assert jobs["replicate"]["continuous"]["pause_status"] == ("PAUSED" if dev else "UNPAUSED")
    assert jobs["maintain"]["schedule"]["pause_status"] == ("PAUSED" if dev else "UNPAUSED")
    assert jobs["replicate_scheduled"]["schedule"]["pause_status"] == "PAUSED"
    rules = {rule["metric"]: rule["value"] for rule in jobs["replicate"]["health"]["rules"]}
    assert rules == {"STREAMING_BACKLOG_RECORDS": 1_000_000, "STREAMING_BACKLOG_SECONDS": 600}


def check_wheel(workspace: FakeWorkspace) -> None:
    (job, *_) = workspace.jobs.values()
    path = job["tasks"][0]["libraries"][0]["whl"]
    data = workspace.files.get(path) or workspace.files[path.removeprefix("/Workspace")]
    assert data is not None
    with zipfile.ZipFile(BytesIO(data)) as file:
        assert "mirrorlake/cli/main.py" in file.namelist()


def check_alerts(workspace: FakeWorkspace) -> None:
    bodies = workspace.bodies("POST", "alerts")
    assert len(bodies) == len(resources()["alerts"])
    for body in bodies:
        assert body["evaluation"]["threshold"] == {"value": {"double_value": 1}}
        assert body["evaluation"]["comparison_operator"] == "GREATER_THAN_OR_EQUAL"
        assert "replication`.alerts ORDER BY" in body["query_text"]
        assert body["schedule"]["quartz_cron_schedule"] == "0 0/30 * * * ?"
        assert body["run_as"] == {"user_name": "somebody@example.com"}
        assert body["evaluation"]["notification"]["subscriptions"] == [
            {"user_email": GIVEN["notify"]}
        ]


def check_dashboard(deployment: Deployment) -> None:
    (body,) = deployment.workspace.bodies("POST", "lakeview/dashboards")
    written = json.loads(
        (ROOT / "bundles/dashboards/replication.lvdash.json").read_text(encoding="utf-8")
    )
    assert [page["name"] for page in json.loads(body["serialized_dashboard"])["pages"]] == [
        page["name"] for page in written["pages"]
    ]
    assert body["warehouse_id"] == GIVEN["warehouse"]


@pytest.mark.parametrize("deployment", ["dev"], indirect=True)
def test_validation_is_not_for_show(deployment: Deployment) -> None:
    path = deployment.directory / "bundles" / "maintain.job.yml"
    path.write_text(
        path.read_text().replace(
            "job_cluster_key: cluster\n          max", "job_cluster_key: x\n          max"
        )
    )
    deployment.run("validate", "--strict", code=1)
