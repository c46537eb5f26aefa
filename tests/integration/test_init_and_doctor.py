"""What `mirrorlake init` writes for real clusters passes `mirrorlake plan`, and nothing is written
for one that does not answer."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.clusters import ClusterPair
from tests.support.commands import forked
from tests.support.kafka import create_topic


def command(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    config = ["-c", str(directory / "mirrorlake.yml")]
    return forked([*config, *words], directory, MIRRORLAKE_CORES="1")


def test_plan_works_after_init(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> None:
    create_topic(clusters.east, topic_name)
    ends = ["--source", clusters.east, "--target", clusters.west, "--source-name", "east"]
    made = command(tmp_path, "init", *ends, "--topics", topic_name, "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["topics"] == [topic_name]
    planned = command(tmp_path, "plan", "--json")
    assert planned.returncode == 0, planned.stderr
    (flow,) = json.loads(planned.stdout)["flows"]
    names = {topic["topic"]: topic["target_topic"] for topic in flow["topics"]}
    assert flow["flow"] == "east->target" and names[topic_name] == f"east.{topic_name}"


@pytest.mark.wide(
    "integration/test_wrong_input.py::test_unreachable_broker_is_named_in_bounded_time"
)
def test_a_cluster_that_does_not_answer_is_exit_code_2(
    clusters: ClusterPair, tmp_path: Path
) -> None:
    ends = ["--source", clusters.east, "--target", "127.0.0.1:1", "--topics", ".*"]
    made = command(tmp_path, "init", *ends)
    assert made.returncode == 2 and "cluster target" in made.stderr, made.stderr
    assert not (tmp_path / "mirrorlake.yml").exists()


def test_doctor_finds_nothing_wrong_with_what_init_wrote(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name)
    ends = ["--source", clusters.east, "--target", clusters.west, "--topics", topic_name]
    assert command(tmp_path, "init", *ends).returncode == 0
    examined = command(tmp_path, "doctor", "--json")
    document = json.loads(examined.stdout)
    assert examined.returncode == 0 and document["healthy"], examined.stdout + examined.stderr
    found = {(one["check"], one["subject"]) for one in document["checks"] if one["state"] == "good"}
    wanted = {("cluster", "source"), ("cluster", "target"), ("access", "source->target")}
    assert wanted <= found
