"""Samples of a flow: each cluster is asked once, and lag in seconds goes on over a restart. No Kafka, no Spark."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from mirrorlake.config.topology import Topology
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run.samples import Sampler
from mirrorlake.run.snapshot import Snapshot


@dataclass
class FakeCluster:
    """Counts what it is asked; does not tell of partitions that are `silent`."""

    ends: dict[TopicAndPartition, int]
    starts: dict[TopicAndPartition, int] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    silent: set[TopicAndPartition] = field(default_factory=set)

    def topics(self) -> dict[str, TopicInfo]:
        names = {topic for topic, _ in self.ends}
        return {name: TopicInfo(name, sum(1 for topic, _ in self.ends if topic == name), 1) for name in names}

    def told_starts(self, keys: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        self.asked["starts"] += 1
        return {key: self.starts.get(key, 0) for key in keys if key not in self.silent}

    def told_ends(self, keys: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        self.asked["ends"] += 1
        return {key: self.ends[key] for key in keys if key not in self.silent}


@dataclass
class FakeLake:
    """Keeps what is appended; `seeds` is what an earlier process left."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    seeds: list[dict[str, Any]] = field(default_factory=list)
    queries: int = 0

    def append(self, table: str, rows: pa.Table) -> None:
        assert table == "positions"
        self.rows += rows.to_pylist()

    def query(self, name: str, flow: str, since_ms: int) -> "FakeLake":
        assert (name, flow) == ("lag_seeds", "east->west")
        self.queries += 1
        return self

    def collect(self) -> list[dict[str, Any]]:
        return self.seeds


class FakeTargets:
    """Every topic that is selected is produced, under the source's alias."""

    def __init__(self, topology: Topology) -> None:
        self.selection = topology.flow("east->west").selection(topology.aliases)

    def remote_topic(self, topic: str) -> str:
        return f"east.{topic}"

    produced_topic = remote_topic


class Setting:
    """A sampler of a flow over two fake clusters."""

    def __init__(self, source: FakeCluster, target: FakeCluster, lake: FakeLake) -> None:
        clusters = {"east": {"bootstrap_servers": "a:1"}, "west": {"bootstrap_servers": "b:1"}}
        document = {"clusters": clusters, "lake": {"path": "lake"}, "flows": {"east->west": {"topics": ["orders"]}}}
        topology = Topology.model_validate(document)
        self.lake = lake
        connections = type("Fakes", (), {"admin": lambda _, alias: {"east": source, "west": target}[alias]})()
        flow, targets = topology.flow("east->west"), FakeTargets(topology)
        self.sampler = Sampler(lake, connections, flow, targets)  # type: ignore[arg-type]

    def sample(self, floors: dict[TopicAndPartition, int], caught_up: bool = False) -> list[dict[str, Any]]:
        before = len(self.lake.rows)
        snapshot = Snapshot(dict(floors), caught_up, dict(floors), dict(floors), frozenset(), frozenset())
        lag = self.sampler.sample(lambda: snapshot)
        assert lag is not None
        self.lag = lag
        return self.lake.rows[before:]


def test_one_call_a_cluster_however_many_partitions() -> None:
    source = FakeCluster({("orders", p): 10 * p for p in range(50)} | {("other", 0): 7})
    target = FakeCluster({("east.orders", p): 9 for p in range(49)})
    setting = Setting(source, target, FakeLake())
    rows = setting.sample({("orders", p): 10 * p for p in range(50)}, caught_up=True)
    assert source.asked == {"starts": 1, "ends": 1} and target.asked == {"ends": 1}
    assert [(row["topic"], row["partition"]) for row in rows] == [("orders", p) for p in range(50)]
    assert {row["lag_records"] for row in rows} == {0} and {row["lag_seconds"] for row in rows} == {0.0}
    assert rows[0]["source_end"] == 0, "a partition that never had a record has its row"
    assert rows[49]["target_end"] is None and rows[48]["target_end"] == 9, "one is not made yet"
    assert setting.lake.queries == 0, "nothing lags, so nothing is read"


def test_lag_in_seconds_is_told_and_goes_on_over_a_restart() -> None:
    lake = FakeLake()
    source, target = FakeCluster({("orders", 0): 10, ("orders", 1): 5}), FakeCluster({("east.orders", 0): 10})
    first = Setting(source, target, lake)
    first.sample({("orders", 0): 10, ("orders", 1): 5})
    source.ends["orders", 0] = 30
    behind, idle = first.sample({("orders", 0): 10, ("orders", 1): 5})
    assert behind["lag_records"] == 20 and behind["lag_seconds"] > 0
    assert (idle["lag_records"], idle["lag_seconds"]) == (0, 0.0)
    assert first.lag.records == 20 and first.lag.seconds == behind["lag_seconds"]

    seed = {"topic": "orders", "partition": 0, "at": behind["sampled_at"].timestamp() - 3600}
    lake.seeds = [{**seed, "produced": 10, "source_end": 30, "lag_seconds": 60.0}]
    again, _ = Setting(source, target, lake).sample({("orders", 0): 10, ("orders", 1): 5})
    assert 3660 <= again["lag_seconds"] < 3670


def test_what_the_source_has_forgotten_is_not_waited_for() -> None:
    source = FakeCluster({("orders", 0): 100}, {("orders", 0): 100})
    (row,) = Setting(source, FakeCluster({("east.orders", 0): 4}), FakeLake()).sample({("orders", 0): 4})
    assert (row["lag_records"], row["lag_seconds"]) == (0, 0.0)


def test_a_partition_whose_leader_is_away_has_no_row_and_its_lag_goes_on() -> None:
    lake, floors = FakeLake(), {("orders", 0): 4, ("orders", 1): 5}
    seed = {"topic": "orders", "partition": 0, "at": time.time(), "produced": 4}
    lake.seeds = [{**seed, "source_end": 10, "lag_seconds": 60.0}]
    source = FakeCluster({("orders", 0): 10, ("orders", 1): 5})
    setting = Setting(source, FakeCluster({("east.orders", 0): 10}), lake)
    assert setting.sample(floors)[0]["lag_seconds"] >= 60
    source.silent = {("orders", 0)}
    assert [row["partition"] for row in setting.sample(floors)] == [1]
    source.silent = set()
    assert setting.sample(floors)[0]["lag_seconds"] >= 60, "not as if it had just begun"
