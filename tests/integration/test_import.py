"""What `mirrorlake import` makes of a real MirrorMaker 2 file passes `mirrorlake plan` on real
clusters."""

import json
import subprocess
from pathlib import Path

from tests.support.clusters import ClusterPair
from tests.support.commands import forked
from tests.support.kafka import create_topic


def command(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = ["-c", str(directory / "mirrorlake.yml"), *arguments]
    return forked(words, directory, MIRRORLAKE_CORES="1")


def test_an_imported_file_passes_plan(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    create_topic(clusters.east, topic_name)
    (tmp_path / "mm2.properties").write_text(
        f"clusters = east, west\neast.bootstrap.servers = {clusters.east}\nwest.bootstrap.servers "
        f"= {clusters.west}\neast.consumer.max.poll.records = 1000\neast.admin.request.timeout.ms "
        "= 20000\nwest.producer.linger.ms = 5\nwest.producer.buffer.memory = "
        "67108864\nwest.admin.retry.backoff.ms = 200\neast->west.enabled = "
        f"true\neast->west.topics = {topic_name}, none-.*\nwest->east.enabled = false\n"
        "replication.policy.separator = -\n",
        encoding="utf-8",
    )
    imported = command(tmp_path, "import", "mm2.properties", "-o", "mirrorlake.yml", "--json")
    assert imported.returncode == 0, imported.stderr
    assert json.loads(imported.stdout)["not_supported"] == []
    planned = command(tmp_path, "plan", "--json")
    assert planned.returncode == 0, planned.stderr
    (flow,) = json.loads(planned.stdout)["flows"]
    assert {topic["topic"]: topic["target_topic"] for topic in flow["topics"]}[
        topic_name
    ] == f"east-{topic_name}"


def test_an_imported_file_names_its_missing_secret(clusters: ClusterPair, tmp_path: Path) -> None:
    (tmp_path / "mm2.properties").write_text(
        f"clusters = east, west\neast.bootstrap.servers = {clusters.east}\nwest.bootstrap.servers "
        f"= {clusters.west}\nwest.security.protocol = SASL_PLAINTEXT\nwest.sasl.mechanism = PLAIN\n"
        "west.sasl.jaas.config = x.PlainLoginModule required username=mirror password=hunter2;\n"
        "east->west.enabled = true\n",
        encoding="utf-8",
    )
    assert command(tmp_path, "import", "mm2.properties", "-o", "mirrorlake.yml").returncode == 0
    planned = command(tmp_path, "plan")
    assert planned.returncode == 2 and "WEST_PASSWORD" in planned.stderr, planned.stderr
    assert "hunter2" not in planned.stderr + (tmp_path / "mirrorlake.yml").read_text(
        encoding="utf-8"
    )


def test_overwriting_takes_force(tmp_path: Path) -> None:
    (tmp_path / "mirrorlake.yml").write_text("mine", encoding="utf-8")
    (tmp_path / "mm2.properties").write_text(
        "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true",
        encoding="utf-8",
    )
    refused = command(tmp_path, "import", "mm2.properties", "-o", "mirrorlake.yml")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert (
        refused.stderr.strip()
        == "mirrorlake: mirrorlake.yml exists; name another file with -o, or give --force"
    )
