"""Topic configs on real brokers: at creation, by difference, and nothing else."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mirrorlake.config.flow import DEFAULT_CONFIG_PROPERTIES_EXCLUDE
from mirrorlake.control.config_plan import ALWAYS
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import describe_topic_configs
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import Change, MemoryLog
from tests.support.calls import calls_of
from tests.support.clusters import ClusterPair
from tests.support.control import make_sync, own_configs, set_cluster_default, set_configs
from tests.support.kafka import create_topic, topics_of
from tests.support.replication import write_topology
from tests.support.waiting import until


class Bench:
    """One topic and its mirror, and config control over them that can be restarted."""

    def __init__(
        self, directory: Path, clusters: ClusterPair, topic: str, **settings: object
    ) -> None:
        self.clusters, self.topic, self.mirror = clusters, topic, f"east.{topic}"
        self.log = MemoryLog()
        flow = {"topics": [re.escape(topic).replace(r"\-", "-") + ".*"], **settings}
        self.file = write_topology(directory, clusters.east, clusters.west, flow)
        self.configs = make_sync(ConfigSync, self.file, self.log)

    def sync(self) -> list[Change]:
        """Sync, and wait until the target's brokers show what was done."""
        rows = self.configs.sync()
        until(
            lambda: [change for change in self.configs.plan() if not self.is_refused(change, rows)],
            gives=[],
        )
        return rows

    def is_refused(self, change: Any, rows: list[Change]) -> bool:
        return any(
            row.outcome == "refused" and str(row.after).startswith(change.key) for row in rows
        )

    def on_target(self) -> dict[str, str]:
        return own_configs(self.clusters.west, self.mirror)

    def make_mirror(self, **config: str) -> None:
        create_topic(self.clusters.west, self.mirror, **config)


def done(key: str, before: str | None, after: str | None, topic: str) -> Change:
    text = f"{key} (default)" if after is None else f"{key}={after}"
    return Change("config", topic, f"{key}={before}", text)


def test_a_mirror_is_made_with_its_configs_at_once(
    tmp_path: Path, clusters: ClusterPair, topic_name: str
) -> None:
    bench = Bench(tmp_path, clusters, topic_name)
    create_topic(
        clusters.east,
        topic_name,
        cleanup_policy="compact",
        min_insync_replicas="1",
        retention_bytes="5000",
    )
    configs = bench.configs.creation({topic_name: 1, "no-such-topic": 1})
    own = {"cleanup.policy": "compact", "retention.bytes": "5000", **ALWAYS}
    assert configs == {topic_name: own, "no-such-topic": ALWAYS}
    admin = ClusterAdmin("west", {"bootstrap.servers": clusters.west})
    admin.create_topics([TopicInfo(bench.mirror, 2, 1, configs[topic_name])])
    assert bench.on_target() == own
    assert bench.configs.plan() == [] and bench.configs.sync() == []


def test_configs_follow_by_difference(
    tmp_path: Path, clusters: ClusterPair, topic_name: str
) -> None:
    exclude = [*DEFAULT_CONFIG_PROPERTIES_EXCLUDE, r"delete\.retention\.ms"]
    bench = Bench(tmp_path, clusters, topic_name, config_properties_exclude=exclude)
    create_topic(clusters.east, topic_name, cleanup_policy="compact", delete_retention_ms="1000")
    bench.make_mirror(delete_retention_ms="77777")
    assert bench.sync() == [done("cleanup.policy", "delete", "compact", bench.mirror)]
    set_configs(clusters.east, topic_name, {"retention.bytes": "123456"})
    assert bench.sync() == [done("retention.bytes", "-1", "123456", bench.mirror)]
    assert bench.on_target() == {
        "cleanup.policy": "compact",
        "retention.bytes": "123456",
        "delete.retention.ms": "77777",
    }
    set_configs(clusters.east, topic_name, {"retention.bytes": None, "delete.retention.ms": None})
    assert bench.sync() == [done("retention.bytes", "123456", None, bench.mirror)]
    assert bench.on_target() == {"cleanup.policy": "compact", "delete.retention.ms": "77777"}
    assert [change for _, change in bench.log.rows if change.outcome != "done"] == []


def test_nothing_is_sent_when_nothing_differs(
    tmp_path: Path, clusters: ClusterPair, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, clusters, topic_name)
    create_topic(clusters.east, topic_name, cleanup_policy="compact")
    bench.make_mirror()
    admin = bench.configs._target
    sent = calls_of(
        admin.client,
        "incremental_alter_configs",
        lambda resources: [
            (entry.name, entry.value)
            for resource in resources
            for entry in resource.incremental_configs
        ],
        monkeypatch.setattr,
    )
    for _ in range(5):
        bench.sync()
    assert sent == [[("cleanup.policy", "compact")]]
    assert len(bench.log.rows) == 1


def test_plan_changes_nothing(tmp_path: Path, clusters: ClusterPair, topic_name: str) -> None:
    bench = Bench(tmp_path, clusters, topic_name)
    create_topic(clusters.east, topic_name, retention_ms="60000")
    create_topic(clusters.east, f"{topic_name}-unmade", retention_ms="60000")
    bench.make_mirror()
    (change,) = bench.configs.plan()
    assert (change.target_topic, change.key, change.before, change.after) == (
        bench.mirror,
        "retention.ms",
        "604800000",
        "60000",
    )
    assert bench.on_target() == {} and bench.log.rows == []


@pytest.mark.wide("test_configs_follow_by_difference")
def test_use_defaults_from(tmp_path: Path, clusters: ClusterPair, topic_name: str) -> None:
    """The two clusters' defaults differ, in what is set for all brokers of each."""
    if clusters.embedded is None:
        pytest.skip("the defaults of somebody's own cluster are not changed")
    benches = {}
    for side in ("target", "source"):
        topic = f"{topic_name}-{side}"
        (tmp_path / side).mkdir()
        benches[side] = Bench(tmp_path / side, clusters, topic, use_defaults_from=side)
        create_topic(clusters.east, topic)
        benches[side].make_mirror(flush_messages="9")
        (configs,) = describe_topic_configs(benches[side].configs._source, [topic]).configs.values()
        assert configs["segment.ms"].origin == "default"
    try:
        set_cluster_default(clusters.west, "log.segment.bytes", "2000000")
        set_cluster_default(clusters.east, "log.roll.ms", "123456")
        both = benches.values()
        until(
            lambda: {_value(one.configs._target, one.mirror, "segment.bytes") for one in both},
            gives={"2000000"},
        )
        until(
            lambda: {_value(one.configs._source, one.topic, "segment.ms") for one in both},
            gives={"123456"},
        )
        for bench in both:
            rows = bench.sync()
            if bench is benches["target"]:
                assert bench.on_target() == {}
                assert rows == [done("flush.messages", "9", None, bench.mirror)]
            else:
                assert bench.on_target() == {
                    "flush.messages": "9223372036854775807",
                    "segment.bytes": "1073741824",
                    "segment.ms": "123456",
                }
                assert len(rows) == 3
            assert bench.configs.sync() == []
    finally:
        set_cluster_default(clusters.west, "log.segment.bytes", None)
        set_cluster_default(clusters.east, "log.roll.ms", None)


def _value(admin: ClusterAdmin, topic: str, key: str) -> str | None:
    return describe_topic_configs(admin, [topic]).configs[topic][key].value


def test_a_refused_change_is_told_once_and_stops_no_other(
    tmp_path: Path, clusters: ClusterPair, topic_name: str
) -> None:
    """The target's own smallest lag, which is excluded, is more than the largest lag of the source
    allows."""
    bench = Bench(
        tmp_path, clusters, topic_name, config_properties_exclude=[r"min\.compaction\.lag\.ms"]
    )
    second = f"{topic_name}-second"
    create_topic(clusters.east, topic_name, max_compaction_lag_ms="1000", retention_bytes="5")
    create_topic(clusters.east, second, retention_bytes="6")
    bench.make_mirror(min_compaction_lag_ms="5000")
    create_topic(clusters.west, f"east.{second}")
    rows = {(row.resource, row.after): row for row in bench.sync()}
    refused = rows.pop((bench.mirror, "max.compaction.lag.ms=1000"))
    assert refused.outcome == "refused" and "compaction.lag" in str(refused.error)
    assert set(rows) == {
        (bench.mirror, "retention.bytes=5"),
        (f"east.{second}", "retention.bytes=6"),
    }
    assert all(row.outcome == "done" for row in rows.values())
    assert bench.on_target() == {"min.compaction.lag.ms": "5000", "retention.bytes": "5"}
    assert bench.configs.sync() == [] and bench.configs.sync() == []
    assert [change.key for change in bench.configs.plan()] == ["max.compaction.lag.ms"]
    # another value is another change
    set_configs(clusters.east, topic_name, {"max.compaction.lag.ms": "2000"})
    assert [(row.after, row.outcome) for row in bench.configs.sync()] == [
        ("max.compaction.lag.ms=2000", "refused")
    ]


def test_more_replicas_in_sync_than_the_target_has_are_refused(
    tmp_path: Path, clusters: ClusterPair, topic_name: str
) -> None:
    bench = Bench(tmp_path, clusters, topic_name, config_properties_exclude=["nothing"])
    create_topic(clusters.east, topic_name, min_insync_replicas="2")
    bench.make_mirror()
    assert bench.configs.creation({topic_name: 1}) == {topic_name: ALWAYS}
    (row,) = bench.sync()
    assert (row.resource, row.outcome) == (
        bench.mirror,
        "refused",
    ) and "no producer could write" in str(row.error)
    assert bench.on_target() == {} and bench.configs.sync() == []


def test_of_two_identity_flows_the_first_in_the_file_leads(
    tmp_path: Path, clusters: ClusterPair, topic_name: str
) -> None:
    flow: Mapping[str, object] = {"topics": [topic_name], "policy": "identity"}
    path = write_topology(tmp_path, clusters.east, clusters.west, flow)
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["flows"]["west->east"] = dict(flow)
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    create_topic(clusters.east, topic_name, retention_bytes="5")
    create_topic(clusters.west, topic_name, retention_bytes="6")
    there, back = (
        make_sync(ConfigSync, path, MemoryLog()),
        make_sync(ConfigSync, path, MemoryLog(), "west->east"),
    )
    assert back.sync() == []
    assert [row.after for row in there.sync()] == ["retention.bytes=5"]
    assert own_configs(clusters.east, topic_name) == {"retention.bytes": "5"}


def test_two_flows_into_one_topic_do_not_fight_for_ever(
    tmp_path: Path, clusters: ClusterPair, topic_name: str
) -> None:
    """Whoever undoes what was set, by hand or as another flow, is told of and left alone after
    three times."""
    bench = Bench(tmp_path, clusters, topic_name)
    create_topic(clusters.east, topic_name, retention_bytes="5")
    bench.make_mirror()
    outcomes = []
    for _ in range(5):
        outcomes.append([row.outcome for row in bench.configs.sync()])
        set_configs(clusters.west, bench.mirror, {"retention.bytes": "6"})
    assert outcomes == [["done"], ["done"], ["done"], ["refused"], []]
    assert "another tool or operator keeps changing retention.bytes" in str(
        bench.log.rows[-1][1].error
    )


@pytest.mark.wide("test_nothing_is_sent_when_nothing_differs")
def test_many_topics_take_few_requests(
    tmp_path: Path, clusters: ClusterPair, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, clusters, topic_name)
    east, west = (
        ClusterAdmin("", {"bootstrap.servers": address})
        for address in (clusters.east, clusters.west)
    )
    names = [f"{topic_name}-{number}" for number in range(130)]
    calls = calls_of(west.client, "create_topics", len, monkeypatch.setattr)
    east.create_topics([TopicInfo(name, 1, 1, {"retention.bytes": "9"}) for name in names])
    until(lambda: set(names) <= topics_of(clusters.east))
    configs = bench.configs.creation(dict.fromkeys(names, 1))
    west.create_topics([TopicInfo(f"east.{name}", 1, 1, configs[name]) for name in names])
    assert calls == [100, 30]
    until(lambda: {f"east.{name}" for name in names} <= topics_of(clusters.west))
    assert bench.configs.sync() == []
    assert own_configs(clusters.west, f"east.{names[-1]}") == {"retention.bytes": "9", **ALWAYS}
