"""A broker dies, and others lead its partitions: the clients that ask for offsets learn of it."""

from pathlib import Path

import pytest

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from tests.support.kafka import NewRecord, write
from tests.support.waiting import until

TOPIC = "led"
PARTITIONS = 9
#: One question that waits for a leader, and the next one.
LIMIT = 30.0


@pytest.mark.slow
def test_a_client_learns_who_leads_after_a_broker_died(tmp_path: Path) -> None:
    """It went on to find no leader until librdkafka asked for metadata by itself."""
    with EmbeddedCluster("east", tmp_path, brokers=3, heap="256m") as cluster:
        address = cluster.bootstrap_servers
        settings: dict[str, str | int | bool] = {"bootstrap.servers": address, "log_level": 2}
        admin, asking = ClusterAdmin("east", settings), ClusterAdmin("east", settings)
        keys = [(TOPIC, number) for number in range(PARTITIONS)]
        admin.create_topics([TopicInfo(TOPIC, PARTITIONS, 3)])
        until(lambda: len(asking.end_offsets(keys, skip_silent=True)) == PARTITIONS, "all are led")
        away = cluster.brokers - 1
        port = int(address.split(",")[away].rpartition(":")[2])
        moved = next(places[0] for (_, of), places in admin.leaders(keys).items() if of == port)
        cluster.kill(away)
        until(lambda: port not in {of for _, of in admin.leaders(keys)}, "others lead them")
        write(address, TOPIC, [NewRecord(b"1", partition=moved[1])])
        until(lambda: asking.end_offsets(keys, skip_silent=True).get(moved) == 1, "known", LIMIT)
