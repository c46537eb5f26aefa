"""Groups moved from a real MirrorMaker 2's copies to ours and back, under load, with a kill -9 of it in between."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import mirrorlake
from tests.support.clusters import ClusterPair, own_topics
from tests.support.kafka import create_topic, read_topic, topics_of
from tests.support.mirror_maker import Load, MirrorMaker, Reader
from tests.support.replication import FLOW, replicating, write_topology

ORDERS, AUDIT = "moving-orders", "moving-audit"
BESIDE = {"topics": ["moving-.*"], "replication_policy_separator": ".mirrorlake.", "sync_group_offsets_enabled": False}

pytestmark = pytest.mark.slow


def theirs(topic: str) -> str:
    return f"east.{topic}"


def ours(topic: str) -> str:
    return f"east.mirrorlake.{topic}"


def wait_for(what: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.3)


def copied(clusters: ClusterPair, topic: str) -> int:
    if theirs(topic) not in topics_of(clusters.west):
        return 0
    return sum(map(len, read_topic(clusters.west, theirs(topic))))


def command(topology: Path, *words: str) -> dict[str, object]:
    line = [sys.executable, "-m", "mirrorlake.cli.main", "-c", str(topology), "migrate", "--flow", FLOW, "--json"]
    done = subprocess.run([*line, *words], capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def assert_each_once(reader: Reader, wanted: set[bytes]) -> None:
    """Nothing lost, and nothing read in two phases; within a phase of theirs only what MirrorMaker 2 wrote twice."""
    assert wanted - reader.values() == set(), f"{reader.group} lost {len(wanted - reader.values())}"
    counted = Counter(value for _, values in reader.phases for value in set(values) & wanted)
    again = {value for value, count in counted.items() if count > 1}
    assert not again, f"{reader.group} read {len(again)} in two phases, such as {sorted(again)[:3]}"
    for topic, values in reader.phases:
        if topic.startswith("east.mirrorlake."):
            assert len(values) == len(set(values)), f"{reader.group} read some twice in {topic}"


def test_two_waves_and_a_rollback(clusters: ClusterPair, spark: SparkSession, tmp_path: Path) -> None:
    with own_topics(clusters):
        for topic, partitions in ((ORDERS, 3), (AUDIT, 2)):
            create_topic(clusters.east, topic, partitions)
        maker = MirrorMaker(clusters, "moving-.*", tmp_path)
        load = Load(clusters.east, {ORDERS: 3, AUDIT: 2})
        billing, slow, reports = (Reader(clusters.west, name) for name in ("billing", "slow", "reports"))
        topology = write_topology(tmp_path / "lake", clusters.east, clusters.west, BESIDE)
        with maker.running(), load.running():
            wait_for(lambda: copied(clusters, ORDERS) > 3_000 and copied(clusters, AUDIT) > 3_000)
            billing.begin(theirs(ORDERS))
            slow.begin(theirs(ORDERS), most=1_500)
            reports.begin(theirs(AUDIT))
            slow.join()
            maker.kill()
            maker.start()
            with replicating(spark, topology):
                wait_for(lambda: has_repeated(clusters), 120)
                wait_for(lambda: ours(AUDIT) in topics_of(clusters.west))
                billing.end()
                wave = command(topology, "--topics", ORDERS, "--groups", "billing|slow")
                assert all(row["done"] == "moved" and row["exact"] for row in wave["groups"]), wave
                assert {row["group"] for row in wave["groups"]} == {"billing", "slow"}
                billing.begin(ours(ORDERS))
                slow.begin(ours(ORDERS))
                dry = mirrorlake.open(topology).migrate(FLOW, AUDIT, dry_run=True)
                assert not dry.complete and "members" in dry.left[0], "reports reads still"
                reports.end()
                assert mirrorlake.open(topology).migrate(FLOW, AUDIT).complete
                reports.begin(ours(AUDIT))
                time.sleep(3)
                billing.end()
                back = command(topology, "--topics", ORDERS, "--groups", "billing", "--rollback")
                assert all(row["done"] == "moved" and row["exact"] for row in back["groups"]), back
                billing.begin(theirs(ORDERS))
                time.sleep(3)
                load.stop()
                for reader in (billing, slow, reports):
                    reader.end()
                billing.read_to_the_end(theirs(ORDERS), load.written[ORDERS])
                slow.read_to_the_end(ours(ORDERS), load.written[ORDERS])
                reports.read_to_the_end(ours(AUDIT), load.written[AUDIT])
                verified = mirrorlake.open(topology).verify()
        assert_each_once(billing, load.written[ORDERS])
        assert_each_once(slow, load.written[ORDERS])
        assert_each_once(reports, load.written[AUDIT])
        assert not verified.differences and verified.proven == verified.records > 0


def has_repeated(clusters: ClusterPair) -> bool:
    """Whether MirrorMaker 2 has come back, and written something twice in both topics."""
    for topic in (ORDERS, AUDIT):
        values = [record.value for partition in read_topic(clusters.west, theirs(topic)) for record in partition]
        if len(values) == len(set(values)):
            return False
    return True
