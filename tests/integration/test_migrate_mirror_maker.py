"""Groups moved from a real MirrorMaker 2's copies to ours and back, under load, with a kill -9 of
it in between."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import mirrorlake
from tests.support.clusters import ClusterPair, own_topics
from tests.support.kafka import create_topic, delete_topic, read_topic, record_count, topics_of
from tests.support.mirror_maker import Load, MirrorMaker, Reader
from tests.support.replication import FLOW, replicating

ORDERS, AUDIT = "moving-orders", "moving-audit"

pytestmark = pytest.mark.slow


def theirs(topic: str) -> str:
    return f"east.{topic}"


def ours(topic: str) -> str:
    return f"east.mirrorlake.{topic}"


def wait_for(what: Callable[[], bool], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.3)


def copied(clusters: ClusterPair, topic: str) -> int:
    if theirs(topic) not in topics_of(clusters.west):
        return 0
    return record_count(clusters.west, theirs(topic))


def command(topology: Path, *words: str, code: int = 0) -> dict[str, Any]:
    line = [sys.executable, "-m", "mirrorlake.cli.main", "-c", str(topology), *words, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == code, (done.stdout, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def move(topology: Path, topic: str, *words: str) -> dict[str, Any]:
    wave = command(topology, "migrate", "--flow", FLOW, "--topics", topic, *words)
    assert all(row["done"] == "moved" and row["exact"] for row in wave["groups"]), wave
    return wave


def beside(directory: Path) -> Path:
    """The topology that `import --beside` makes; without it the plan refuses to write where
    MirrorMaker 2 does."""
    properties = str(directory / "mm2.properties")
    (directory / "same").mkdir()
    (directory / "beside").mkdir()
    same, made = directory / "same" / "mirrorlake.yml", directory / "beside" / "mirrorlake.yml"
    command(same, "import", properties, "-o", str(same))
    refused = command(same, "plan", code=2)
    assert "second-writer" in {problem["rule"] for problem in refused["problems"]}
    assert {
        topic["holder"] for topic in refused["flows"][0]["topics"] if "moving" in topic["topic"]
    } == {"MirrorMaker 2"}
    command(made, "import", properties, "--beside", "-o", str(made))
    planned = command(made, "plan")
    assert planned["problems"] == []
    wanted = {ORDERS: ours(ORDERS), AUDIT: ours(AUDIT)}
    assert {
        topic["topic"]: topic["target_topic"] for topic in planned["flows"][0]["topics"]
    } == wanted
    assert {topic["holder"] for topic in planned["flows"][0]["topics"]} == {None}
    return made


def assert_each_once(reader: Reader, wanted: set[bytes]) -> None:
    """Nothing lost, and nothing read in two phases; within a phase of theirs only what MirrorMaker
    2 wrote twice."""
    assert wanted - reader.values() == set(), f"{reader.group} lost {len(wanted - reader.values())}"
    counted = Counter(value for _, values in reader.phases for value in set(values) & wanted)
    again = {value for value, count in counted.items() if count > 1}
    assert not again, f"{reader.group} read {len(again)} in two phases, such as {sorted(again)[:3]}"
    for topic, values in reader.phases:
        if topic.startswith("east.mirrorlake."):
            assert len(values) == len(set(values)), f"{reader.group} read some twice in {topic}"


def test_two_waves_and_a_rollback(
    clusters: ClusterPair, spark: SparkSession, tmp_path: Path
) -> None:
    with own_topics(clusters):
        for topic, partitions in ((ORDERS, 3), (AUDIT, 2)):
            create_topic(clusters.east, topic, partitions)
        maker = MirrorMaker(clusters, "moving-.*", tmp_path)
        load = Load(clusters.east, {ORDERS: 3, AUDIT: 2})
        billing, slow, reports = (
            Reader(clusters.west, name) for name in ("billing", "slow", "reports")
        )
        with maker.running(), load.running():
            wait_for(lambda: copied(clusters, ORDERS) > 3_000 and copied(clusters, AUDIT) > 3_000)
            billing.begin(theirs(ORDERS))
            slow.begin(theirs(ORDERS), most=1_500)
            reports.begin(theirs(AUDIT))
            slow.join()
            topology = beside(tmp_path)
            maker.kill()
            maker.start()
            with replicating(spark, topology):
                wait_for(lambda: has_repeated(clusters))
                wait_for(lambda: ours(AUDIT) in topics_of(clusters.west))
                billing.end()
                wave = move(topology, ORDERS, "--groups", "billing|slow")
                assert {row["group"] for row in wave["groups"]} == {"billing", "slow"}
                billing.begin(ours(ORDERS))
                slow.begin(ours(ORDERS))
                dry = mirrorlake.open(topology).migrate(FLOW, AUDIT, dry_run=True)
                assert not dry.complete and "members" in dry.left[0], "reports reads still"
                reports.end()
                move(topology, AUDIT)
                reports.begin(ours(AUDIT))
                time.sleep(3)
                billing.end()
                move(topology, ORDERS, "--groups", "billing", "--rollback")
                billing.begin(theirs(ORDERS))
                time.sleep(3)
                load.stop()
                for reader in (billing, slow, reports):
                    reader.end()
                billing.read_to_the_end(theirs(ORDERS), load.written[ORDERS])
                slow.read_to_the_end(ours(ORDERS), load.written[ORDERS])
                reports.read_to_the_end(ours(AUDIT), load.written[AUDIT])
                move(topology, ORDERS, "--groups", "billing")
                maker.kill()
                for topic in (ORDERS, AUDIT):
                    delete_topic(clusters.west, theirs(topic))
                verified = mirrorlake.open(topology).verify()
        assert_each_once(billing, load.written[ORDERS])
        assert_each_once(slow, load.written[ORDERS])
        assert_each_once(reports, load.written[AUDIT])
        assert not verified.differences and verified.proven == verified.records > 0


def has_repeated(clusters: ClusterPair) -> bool:
    """Whether MirrorMaker 2 has come back, and written something twice in both topics."""
    for topic in (ORDERS, AUDIT):
        values = [
            record.value
            for partition in read_topic(clusters.west, theirs(topic))
            for record in partition
        ]
        if len(values) == len(set(values)):
            return False
    return True
