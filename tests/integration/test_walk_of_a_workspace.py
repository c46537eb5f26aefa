"""A platform engineer with an empty workspace gets to a running replication by what
docs/databricks.md says: the bundle's jobs are called as it calls them, in a folder in place of the
volume. What a workspace itself does with the bundle is in tests/bundle."""

import re
import shlex
import signal
from pathlib import Path

import pytest
import yaml

from tests.support.bundle import resources
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, write
from tests.support.metastore import CATALOG, Metastore
from tests.support.waiting import until
from tests.support.walks import ROOT, arrives, running, typed

pytestmark = pytest.mark.slow

#: The volume of the bundle.
VOLUME = "/Volumes/main/replication/files/"
#: Rows of the page that are its head, or whose commands need something that happened, such as the
#: loss of a source, or a time at which records were there.
NOT_TYPED = ("command", "divergence", "resolve --kind", "failback", "restore", "register")


def test_a_platform_engineer_with_an_empty_workspace(
    clusters: ClusterPair, metastore: Metastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundle's job waits for the file, which is then uploaded; and the job `mirrorlake command`
    answers what the page says. A Hive metastore is in place of Unity Catalog."""
    for name, value in metastore.environment.items():
        monkeypatch.setenv(name, value)
    create_topic(clusters.east, "orders")
    write(clusters.east, "orders", [NewRecord(b"x", f"order {k}".encode()) for k in range(100)])
    with running(tmp_path, words_of("replicate", tmp_path), signal.SIGTERM) as log:
        until(
            lambda: "waiting for the topology file" in log.read_text(encoding="utf-8"), "it waits"
        )
        (tmp_path / "mirrorlake.yml").write_text(uploaded(clusters), encoding="utf-8")
        arrives(tmp_path, "orders", 100)
        for command, arguments in [("status", ""), *day_to_day()]:
            given = {"command": command, "arguments": arguments}
            typed(tmp_path, shlex.join(words_of("command", tmp_path, **given)))


def words_of(job: str, volume: Path, **given: str) -> list[str]:
    """What a job of the bundle calls."""
    (task,) = resources()["jobs"][job]["tasks"]
    wheel = task["python_wheel_task"]
    words = [word.replace(VOLUME, f"{volume}/") for word in wheel["parameters"]]
    for name, value in given.items():
        words = [value if word == f"{{{{job.parameters.{name}}}}}" else word for word in words]
    return [wheel["entry_point"], *words]


def uploaded(clusters: ClusterPair) -> str:
    """The page's topology file, with these clusters and a folder in place of the store."""
    page = (ROOT / "docs" / "databricks.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(clusters:\n.*?abfss.*?)```", page, re.DOTALL)
    document = yaml.safe_load(text)
    for alias, cluster in document["clusters"].items():
        cluster["bootstrap_servers"] = getattr(clusters, alias)
        cluster.pop("security", None)
    document["lake"] = {"path": "./lake", "catalog": CATALOG, "schema": "walked"}
    return yaml.safe_dump(document)


def day_to_day() -> list[tuple[str, str]]:
    """The page's rows of what the job `mirrorlake command` takes."""
    page = (ROOT / "docs" / "databricks.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (?:`(.*?)`)? ?\| .* \|$", page, re.MULTILINE)
    chosen = [row for row in rows if not " ".join(row).startswith(NOT_TYPED)]
    assert len(chosen) >= 7, rows
    return chosen
