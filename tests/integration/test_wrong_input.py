"""Wrong input ends with exit code 2 (1 where it is the replication's state), one sentence, and
nothing half done."""

import json
import signal
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.errors import ReplicationError
from tests.support.clusters import ClusterPair
from tests.support.commands import Answer
from tests.support.kafka import create_topic, numbered, read_topic, topics_of, write
from tests.support.lake_rows import no_session, opened
from tests.support.replication import FLOW, finish, replicate_once, start_run, write_topology
from tests.support.waiting import until

SLOW = pytest.mark.slow


def told_at_once(
    directory: Path, *parts: str, command: tuple[str, ...] = ("run", "--once")
) -> Answer:
    """A command that must end before Spark is there: nothing else is said but how far it came, and
    no lake is made."""
    answer = Answer(directory, *command)
    answer.assert_one_sentence(*parts)
    assert len([line for line in answer.err.strip().splitlines() if "Z INFO " not in line]) == 1, (
        answer.err
    )
    assert not (directory / "lake").exists()
    return answer


GOOD = {
    "clusters": {
        "east": {"bootstrap_servers": "127.0.0.1:1"},
        "west": {"bootstrap_servers": "127.0.0.1:2"},
    },
    "lake": {"path": "./lake"},
    "flows": {FLOW: {"topics": ["orders"]}},
}


@pytest.mark.parametrize(
    "command",
    [("run", "--once"), *(pytest.param((name,), marks=SLOW) for name in ("plan", "status"))],
)
def test_missing_file(tmp_path: Path, command: tuple[str, ...]) -> None:
    told_at_once(tmp_path, str(tmp_path / "mirrorlake.yml"), command=command)


WRONG = {
    "no yaml": ("clusters: [east, {", ("mirrorlake.yml",)),
    "not a mapping": ("- a\n- b\n", ("mirrorlake.yml",)),
    "unknown key": (
        yaml.safe_dump({**GOOD, "flows": {FLOW: {"topic": ["orders"]}}}),
        ("topic", "topics"),
    ),
    "unknown cluster": (yaml.safe_dump({**GOOD, "flows": {"east->wets": {}}}), ("wets", "west")),
    "names that Kafka does not allow": (
        yaml.safe_dump({**GOOD, "flows": {FLOW: {"replication_policy_separator": "/"}}}),
        ("replication_policy_separator",),
    ),
    "one cluster on both ends": (
        yaml.safe_dump({**GOOD, "flows": {"east->east": {}}}),
        ("east->east",),
    ),
}


#: Not slow is one that is no topology at all, and one that is not consistent: each has its test in
#: tests/unit/config.
FEW = ("no yaml", "unknown cluster")


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in FEW else SLOW) for case in WRONG]
)
def test_topology_that_cannot_be_run(tmp_path: Path, case: str) -> None:
    text, parts = WRONG[case]
    (tmp_path / "mirrorlake.yml").write_text(text, encoding="utf-8")
    told_at_once(tmp_path, *parts)


def test_unknown_flow(tmp_path: Path) -> None:
    (tmp_path / "mirrorlake.yml").write_text(yaml.safe_dump(GOOD), encoding="utf-8")
    told_at_once(tmp_path, "east->wset", FLOW, command=("run", "--once", "--flow", "east->wset"))


def test_unreachable_broker_is_named_in_bounded_time(clusters: ClusterPair, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    write_topology(tmp_path, clusters.east, address, {"topics": ["orders"]})
    answer = Answer(tmp_path, "run", "--once")
    answer.assert_one_sentence(address, "west")
    assert answer.seconds < 30
    assert not list(tmp_path.glob("lake/records"))


def test_same_cluster_under_two_aliases(clusters: ClusterPair, tmp_path: Path) -> None:
    other_name = clusters.east.replace("127.0.0.1", "localhost")
    write_topology(tmp_path, clusters.east, other_name, {"topics": ["orders"]})
    for command in (("run", "--once"), ("plan",)):
        answer = Answer(tmp_path, *command)
        answer.assert_one_sentence("east", "west", answers=command == ("plan",))
    assert not list(tmp_path.glob("lake/records"))


def test_lake_below_a_file(clusters: ClusterPair, tmp_path: Path) -> None:
    path = write_topology(tmp_path, clusters.east, clusters.west, {"topics": ["orders"]})
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**document, "lake": {"path": "./file/lake"}}), encoding="utf-8")
    told_at_once(tmp_path, str(tmp_path / "file" / "lake"))
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.wide("integration/test_before_spark.py::test_a_stop_does_not_wait_for_spark")
def test_it_can_be_stopped_while_java_starts(clusters: ClusterPair, tmp_path: Path) -> None:
    """Nobody has to wait for a session that is not wanted any more. Meanwhile the lake is made."""
    run = start_run(
        write_topology(tmp_path, clusters.east, clusters.west, {"topics": ["orders"]}),
        "--log",
        "json",
    )
    try:
        until(
            lambda: "asking the clusters" in (tmp_path / "run.log").read_text(encoding="utf-8"),
            "they were asked",
        )
        run.send_signal(signal.SIGTERM)
        assert run.wait(15) == 0
    finally:
        finish(run, 1) if run.poll() is None else None
    said = [
        json.loads(line) for line in (tmp_path / "run.log").read_text(encoding="utf-8").splitlines()
    ]
    assert said[-1]["message"] == f"{FLOW}: 0 records in 0 batches, 0 short"


def test_nothing_is_left_of_a_lake_when_a_cluster_is_wrong(
    clusters: ClusterPair, tmp_path: Path
) -> None:
    write_topology(tmp_path, clusters.east, clusters.east, {"topics": ["orders"]})
    assert Answer(tmp_path, "run", "--once").code == 2
    assert not (tmp_path / "lake").exists()


def test_lake_of_a_newer_version(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(clusters.east, topic_name)
    write(clusters.east, topic_name, numbered(10))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    opened(no_session, topology)
    newer = DeltaTable(str(tmp_path / "lake" / "records"))
    newer.alter.set_table_properties({"mirrorlake.version": "99"}, raise_if_not_exists=False)
    answer = Answer(tmp_path, "run", "--once")
    answer.assert_one_sentence("99", "upgrade")
    assert f"east.{topic_name}" not in topics_of(clusters.west)
    assert not list(tmp_path.glob("lake/records/*.parquet"))


@pytest.mark.wide(
    "integration/test_plan_of_unseen.py::test_a_mirror_that_its_target_would_refuse_for_its_name"
)
def test_target_name_that_is_too_long(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    long = topic_name.ljust(247, "x")
    for topic in (long, topic_name):
        create_topic(clusters.east, topic)
        write(clusters.east, topic, numbered(10))
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [topic_name, long]}
    )
    plan = Answer(tmp_path, "plan", "--json")
    assert plan.code == 1, plan.err
    assert "refuse" in plan.out and "Traceback" not in plan.err
    assert not (tmp_path / "lake").exists()
    with pytest.raises(ReplicationError) as caught:
        replicate_once(spark, topology)
    assert caught.value.topic == long
    assert not [name for name in topics_of(clusters.west) if name.startswith(f"east.{long}"[:200])]
    assert len(read_topic(clusters.west, f"east.{topic_name}")[0]) == 10


def test_a_login_where_none_is_taken(clusters: ClusterPair, tmp_path: Path) -> None:
    """Its credentials were called refused, which no broker had looked at."""
    login = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "mirror"}
    document = {
        **GOOD,
        "clusters": {
            "east": {
                "bootstrap_servers": clusters.east,
                "security": {**login, "password": "hunter2"},
            },
            "west": {"bootstrap_servers": clusters.west},
        },
    }
    (tmp_path / "mirrorlake.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    answer = told_at_once(tmp_path, "east", "takes no login on this port", "check protocol")
    assert "hunter2" not in answer.err
