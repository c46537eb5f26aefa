"""How mirrors are made on a target whose defaults are other than the source's: with what can be
kept of the configs of their topics, and with what keeps their records as they are."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mirrorlake.control.config_plan import ALWAYS
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import MemoryLog
from tests.support.clusters import ClusterPair, own_topics
from tests.support.commands import mirrorlake
from tests.support.control import make_sync, own_configs, set_configs
from tests.support.kafka import NewRecord, create_topic, read_topic, topics_of, write
from tests.support.replication import write_topology
from tests.support.waiting import until

#: No topic with a longer `min.compaction.lag.ms` can be made where this is the default.
ODD = {"log.message.timestamp.type": "LogAppendTime", "log.cleaner.max.compaction.lag.ms": "50000"}
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def odd(clusters: ClusterPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPair]:
    """Two clusters, of which west has odd defaults."""
    folder = tmp_path_factory.mktemp("odd")
    with own_topics(clusters):
        embedded = start_clusters(["west"], folder, properties=ODD, heap="256m")
        try:
            yield ClusterPair(clusters.east, embedded["west"].bootstrap_servers, embedded)
        finally:
            stop_clusters(embedded)


@pytest.mark.wide(
    "integration/test_control_configs.py::test_a_mirror_is_made_with_its_configs_at_once"
)
def test_a_mirror_is_made_with_all_that_its_target_takes_and_keeps_its_records(
    odd: ClusterPair, tmp_path: Path
) -> None:
    """A config that the target refuses, one that would refuse what is older, and the time of the
    target's brokers."""
    create_topic(
        odd.east,
        "t",
        max_message_bytes="3000000",
        min_compaction_lag_ms="100000",
        retention_ms="-1",
    )
    old = int(time.time() * 1000) - 30 * DAY_MS
    records = [
        NewRecord(b"old", timestamp=old),
        NewRecord(os.urandom(2_000_000), timestamp=old + 1),
    ]
    write(odd.east, "t", records, message_max_bytes=4_000_000)
    set_configs(odd.east, "t", {"message.timestamp.before.max.ms": "3600000"})
    topology = write_topology(tmp_path, odd.east, odd.west, {"topics": ["t"]})
    mirrorlake(topology, "run", "--once", code=1)  # for the config that is refused
    assert [record.timestamp for record in read_topic(odd.west, "east.t")[0]] == [old, old + 1]
    kept = {"max.message.bytes": "3000000", "retention.ms": "-1", **ALWAYS}
    assert own_configs(odd.west, "east.t") == kept
    (told,) = mirrorlake(topology, "sql", "SELECT * FROM changes WHERE kind = 'config'")
    assert (told["resource"], told["after"], told["outcome"]) == (
        "east.t",
        "min.compaction.lag.ms=100000",
        "refused",
    )
    assert "compaction" in told["error"]


@pytest.mark.wide(
    "integration/test_control_configs.py::test_a_refused_change_is_told_once_and_stops_no_other"
)
def test_configs_that_do_not_go_together_leave_as_many_as_do(odd: ClusterPair) -> None:
    admin = ClusterAdmin("east", {"bootstrap.servers": odd.east})
    left: dict[str, object] = {}
    lags = {"max.compaction.lag.ms": "100", "min.compaction.lag.ms": "200"}
    wanted = [
        TopicInfo("odd", 1, 1, {"no.such.key": "1", "retention.ms": "5"}),
        TopicInfo("pair", 1, 1, {**lags, "retention.ms": "6"}),
        TopicInfo("good", 1, 1, {"retention.ms": "7"}),
    ]
    assert admin.try_create_topics(wanted, left.__setitem__) == []
    until(lambda: {"odd", "pair", "good"} <= topics_of(odd.east))
    assert own_configs(odd.east, "odd") == {"retention.ms": "5"}
    assert own_configs(odd.east, "pair") == {"max.compaction.lag.ms": "100", "retention.ms": "6"}
    assert own_configs(odd.east, "good") == {"retention.ms": "7"}
    assert {topic: list(keys) for topic, keys in left.items()} == {  # type: ignore[call-overload]
        "odd": ["no.such.key"],
        "pair": ["min.compaction.lag.ms"],
    }


@pytest.mark.wide(
    "integration/test_control_configs.py::test_a_mirror_is_made_with_its_configs_at_once"
)
@pytest.mark.parametrize("excluded", [True, False])
def test_a_mirror_that_stamps_its_records_gets_to_keep_theirs_or_is_told(
    odd: ClusterPair, tmp_path: Path, topic_name: str, excluded: bool
) -> None:
    """One that was made by the target's defaults, and one on which somebody set it."""
    for topic, configs in (
        (topic_name, {}),
        (f"{topic_name}-hand", {"message_timestamp_type": "LogAppendTime"}),
    ):
        create_topic(odd.east, topic)
        create_topic(odd.west, f"east.{topic}", **configs)
    exclude = ["message\\.timestamp\\.type"] if excluded else []
    file = write_topology(
        tmp_path,
        odd.east,
        odd.west,
        {"topics": [f"{topic_name}.*"], "config_properties_exclude": exclude},
    )
    rows = make_sync(ConfigSync, file, MemoryLog()).sync()
    said = {(row.resource, row.after): row.outcome for row in rows}
    after = "message.timestamp.type=CreateTime"
    assert said == {
        (f"east.{topic_name}", after): "done",
        (f"east.{topic_name}-hand", after): "refused" if excluded else "done",
    }
