"""docs/failover.md, run from top to bottom: every command of the page in its order, on real
clusters and consumers."""

import json
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from mirrorlake.groups.sync_plan import HAS_READ_ON
from tests.support.clusters import ClusterPair, own_topics
from tests.support.kafka import NewRecord, create_topic, write
from tests.support.readers import Reading, read_with_python
from tests.support.replication import FLOW, lake_of, replicate_once, write_topology

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "failover.md"
GROUPS = ["billing", "audit"]


def sections() -> dict[str, list[str]]:
    """The commands of the page, by its headings."""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"```sh\n(.*?)```", part, re.DOTALL)
        commands = [line.strip() for block in blocks for line in block.splitlines() if line.strip()]
        if commands:
            found[part.splitlines()[0]] = commands
    return found


@pytest.fixture
def own(clusters: ClusterPair) -> Iterator[ClusterPair]:
    """The clusters, without the page's topics and groups behind the test; `run` takes signals,
    which are given back."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with own_topics(clusters):
        yield clusters
        for bootstrap in (clusters.east, clusters.west):
            admin = AdminClient({"bootstrap.servers": bootstrap})
            for future in admin.delete_consumer_groups(GROUPS).values():
                future.result(20)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_the_page(spark: SparkSession, own: ClusterPair, tmp_path: Path) -> None:
    page = sections()
    topology = write_topology(
        tmp_path,
        own.east,
        own.west,
        {"topics": ["orders"], "groups": GROUPS, "emit_checkpoints_enabled": True},
    )

    def call(line: str, code: int = 0) -> str:
        words = shlex.split(line)
        assert words[0] == "mirrorlake", line
        result = CliRunner().invoke(app, ["-c", str(topology), *words[1:]])
        assert result.exit_code == code, (line, result.output, result.exception)
        return result.output

    def source_is(address: str) -> None:
        document = yaml.safe_load(topology.read_text(encoding="utf-8"))
        document["clusters"]["east"]["bootstrap_servers"] = address
        topology.write_text(yaml.safe_dump(document), encoding="utf-8")

    def read(bootstrap: str, group: str, limit: int | None = None) -> list[list[int]]:
        """What the group reads on from where it stands, at most so many."""
        topic = "orders" if bootstrap == own.east else "east.orders"
        return read_with_python(bootstrap, "earliest", [Reading(group, topic, limit)])[group].get(
            0, []
        )

    create_topic(own.east, "orders")
    write(own.east, "orders", [NewRecord(b"%d" % number) for number in range(1_000)])
    assert read(own.east, "billing", 600) == [[0, 599]]
    assert read(own.east, "audit", 400) == [[0, 399]]
    replicate_once(spark, topology)
    groups, positions = page.pop("Check")
    assert "billing" in call(groups) and "billing" in call(positions)

    write(own.east, "orders", [NewRecord(b"%d" % number) for number in range(1_000, 1_050)])
    assert read(own.east, "billing", 100) == [[600, 699]]
    dry_run, move = page.pop("Planned migration")
    assert "would move" in call(dry_run)
    assert "is drained (50 records" in call(move)
    assert read(own.west, "billing", 200) == [[700, 899]], "0 again, 0 skipped"
    again = json.loads(call(f"{move} --json"))
    assert [(row["done"], row["detail"]) for row in again["groups"]] == [("there", HAS_READ_ON)]

    failover, divergence, lost, run = page.pop("Unplanned failover")
    source_is("127.0.0.1:1")
    assert "the last checkpoints were used" in call(failover)
    assert read(own.west, "audit") == [[400, 1_049]], "its checkpoint was as new as its position"
    call(divergence)
    call(lost)
    source_is(own.east)
    call(run)
    rows = (
        lake_of(spark, topology)
        .sql(f"SELECT * FROM group_positions WHERE flow = '{FLOW}'")
        .collect()
    )
    assert {(row["group_id"], row["synced"]) for row in rows} == {
        ("audit", True),
        ("billing", True),
    }

    dry_run, home = page.pop("Failback")
    assert "would move" in call(dry_run)
    call(home)
    assert read(own.east, "billing") == [[900, 1_049]], "0 again, 0 skipped"
    assert page == {}, "commands of the page that no process ran"
