"""Samples of a flow: each cluster is asked once, and lag in seconds goes on over a restart. No Kafka, no Spark."""

import time
from typing import Any

from mirrorlake.config.topology import Topology
from mirrorlake.kafka.connections import Connections
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run.samples import Sampler
from mirrorlake.run.snapshot import Snapshot
from mirrorlake.testing import MemoryCluster, MemoryLake


class FakeTargets:
    """Every topic that is selected is produced, under the source's alias."""

    def __init__(self, topology: Topology) -> None:
        self.selection = topology.flow("east->west").selection

    def remote_topic(self, topic: str) -> str:
        return f"east.{topic}"

    produced_topic = remote_topic


class Setting:
    """A sampler of a flow over two fake clusters."""

    def __init__(self, source: MemoryCluster, target: MemoryCluster, lake: MemoryLake) -> None:
        clusters = {"east": {"bootstrap_servers": "a:1"}, "west": {"bootstrap_servers": "b:1"}}
        document = {"clusters": clusters, "lake": {"path": "lake"}, "flows": {"east->west": {"topics": ["orders"]}}}
        topology = Topology.model_validate(document)
        self.lake = lake
        connections = Connections(topology, {"east": source, "west": target})
        flow, targets = topology.flow("east->west"), FakeTargets(topology)
        self.sampler = Sampler(lake, connections, flow, targets)  # type: ignore[arg-type]

    def sample(self, floors: dict[TopicAndPartition, int], caught_up: bool = False) -> list[dict[str, Any]]:
        before = len(self.lake.appended.get("positions", ()))
        snapshot = Snapshot(dict(floors), caught_up, dict(floors), dict(floors), frozenset(), frozenset())
        lag = self.sampler.sample(lambda: snapshot)
        assert lag is not None
        self.lag = lag
        return self.lake.appended["positions"][before:]


def test_one_call_a_cluster_however_many_partitions() -> None:
    source = MemoryCluster("east", {"orders": range(0, 500, 10), "other": [7]})
    target = MemoryCluster("west", {"east.orders": [9] * 49})
    setting = Setting(source, target, MemoryLake())
    rows = setting.sample({("orders", p): 10 * p for p in range(50)}, caught_up=True)
    assert source.asked == {"topics": 1, "told_starts": 1, "told_ends": 1}
    assert target.asked == {"topics": 1, "told_ends": 1}
    assert [(row["topic"], row["partition"]) for row in rows] == [("orders", p) for p in range(50)]
    assert {row["lag_records"] for row in rows} == {0} and {row["lag_seconds"] for row in rows} == {0.0}
    assert rows[0]["source_end"] == 0, "a partition that never had a record has its row"
    assert rows[49]["target_end"] is None and rows[48]["target_end"] == 9, "one is not made yet"
    assert not setting.lake.asked, "nothing lags, so nothing is read"


def test_lag_in_seconds_is_told_and_goes_on_over_a_restart() -> None:
    lake = MemoryLake({"lag_seeds": []})
    source, target = MemoryCluster("east", {"orders": [10, 5]}), MemoryCluster("west", {"east.orders": [10]})
    first = Setting(source, target, lake)
    first.sample({("orders", 0): 10, ("orders", 1): 5})
    source.ends["orders"][0] = 30
    behind, idle = first.sample({("orders", 0): 10, ("orders", 1): 5})
    assert behind["lag_records"] == 20 and behind["lag_seconds"] > 0
    assert (idle["lag_records"], idle["lag_seconds"]) == (0, 0.0)
    assert first.lag.records == 20 and first.lag.seconds == behind["lag_seconds"]

    seed = {"topic": "orders", "partition": 0, "at": behind["sampled_at"].timestamp() - 3600}
    lake.answers["lag_seeds"] = [{**seed, "produced": 10, "source_end": 30, "lag_seconds": 60.0}]
    again, _ = Setting(source, target, lake).sample({("orders", 0): 10, ("orders", 1): 5})
    assert 3660 <= again["lag_seconds"] < 3670


def test_what_the_source_has_forgotten_is_not_waited_for() -> None:
    source, target = MemoryCluster("east", {"orders": [100]}), MemoryCluster("west", {"east.orders": [4]})
    source.starts["orders", 0] = 100
    (row,) = Setting(source, target, MemoryLake()).sample({("orders", 0): 4})
    assert (row["lag_records"], row["lag_seconds"]) == (0, 0.0)


def test_a_partition_whose_leader_is_away_has_no_row_and_its_lag_goes_on() -> None:
    lake, floors = MemoryLake(), {("orders", 0): 4, ("orders", 1): 5}
    seed = {"topic": "orders", "partition": 0, "at": time.time(), "produced": 4}
    lake.answers["lag_seeds"] = [{**seed, "source_end": 10, "lag_seconds": 60.0}]
    source = MemoryCluster("east", {"orders": [10, 5]})
    setting = Setting(source, MemoryCluster("west", {"east.orders": [10]}), lake)
    assert setting.sample(floors)[0]["lag_seconds"] >= 60
    source.silent = {("orders", 0)}
    assert [row["partition"] for row in setting.sample(floors)] == [1]
    source.silent = set()
    assert setting.sample(floors)[0]["lag_seconds"] >= 60, "not as if it had just begun"
