"""What becomes of reading when the way to a cluster is slow, is cut, or lets nobody in any more."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, Producer
from pyspark.sql import SparkSession

from mirrorlake.errors import AuthenticationFailed
from mirrorlake.kafka import records
from mirrorlake.kafka.log import Log
from mirrorlake.kafka.python_log import PythonLog
from mirrorlake.native.reader import NativeReader
from mirrorlake.native.silence import ClusterSilent
from mirrorlake.threads import in_thread
from mirrorlake.verify import log_reader
from mirrorlake.verify.log_reader import LogReader, Throttle
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.lake_rows import now_of
from tests.support.replication import Run, assert_same, replicate_once, replicating, write_topology
from tests.support.slow_link import Link, LinkedCluster, linked_cluster
from tests.support.waiting import until

PATIENCE = 3.0
SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinkedCluster]:
    with linked_cluster(tmp_path_factory.mktemp("linked")) as found:
        yield found


LOGS: dict[str, Callable[[Mapping[str, Any]], Log]] = {
    "native": lambda settings: NativeReader(settings, patience_seconds=PATIENCE),
    "native, kept": lambda settings: NativeReader(settings, keep=True, patience_seconds=PATIENCE),
    "in Python": lambda settings: PythonLog(settings, keep=True, patience_seconds=PATIENCE),
}


@pytest.fixture(
    params=["native, kept", *(pytest.param(one, marks=SLOW) for one in ("native", "in Python"))]
)
def log_of(request: pytest.FixtureRequest) -> Iterator[Callable[[Mapping[str, str]], Log]]:
    """Opens a log by each of the readers; it is closed behind the test."""
    opened: list[Log] = []

    def open_log(settings: Mapping[str, str]) -> Log:
        opened.append(LOGS[request.param]({**settings, "group.id": "g", "log_level": 2}))
        return opened[-1]

    yield open_log
    for log in opened:
        log.close()


@pytest.mark.wide("integration/test_security.py::test_refused_logins")
def test_a_password_that_is_wrong_from_now_on_is_what_is_told(
    linked: LinkedCluster, log_of: Callable[[Mapping[str, str]], Log], topic_name: str
) -> None:
    """And not the name of a partition that gives nothing."""
    linked.set_password("right")
    create_topic(linked.cluster.bootstrap_servers, topic_name, 2)
    write(linked.cluster.bootstrap_servers, topic_name, numbered(20, 2))
    log = log_of(linked.login("right"))
    assert sum(len(rows) for rows in _batches(log, topic_name, 0)) == 10
    linked.set_password("another")
    linked.guarded.cut()
    with pytest.raises(ClusterSilent, match="(?i)authentication") as raised:
        _batches(log, topic_name, 1)
    assert topic_name not in str(raised.value)


@pytest.mark.wide(
    "integration/test_wrong_input.py::test_unreachable_broker_is_named_in_bounded_time"
)
def test_a_broker_that_is_gone_is_what_is_told(
    linked: LinkedCluster, log_of: Callable[[Mapping[str, str]], Log], topic_name: str
) -> None:
    create_topic(linked.cluster.bootstrap_servers, topic_name, 2)
    write(linked.cluster.bootstrap_servers, topic_name, numbered(20, 2))
    log = log_of({"bootstrap.servers": linked.cluster.bootstrap_servers})
    assert sum(len(rows) for rows in _batches(log, topic_name, 0)) == 10
    linked.cluster.kill()
    try:
        with pytest.raises(ClusterSilent, match="(?i)refused|down|disconnected") as raised:
            _batches(log, topic_name, 1)
        assert topic_name not in str(raised.value)
    finally:
        linked.cluster.start_broker()


@pytest.mark.wide("integration/test_security.py::test_refused_logins")
def test_verify_and_single_records_say_who_was_refused(
    linked: LinkedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_reader, "SILENCE_SECONDS", PATIENCE)
    monkeypatch.setattr(records, "READ_SECONDS", PATIENCE)
    linked.set_password("right")
    settings = {**linked.login("wrong"), "log_level": 2}
    reader = LogReader("east", settings, Throttle(None, time.monotonic, time.sleep))
    refused = "cluster east cannot be read: it refused the credentials of principal mirror"
    with pytest.raises(AuthenticationFailed, match=refused):
        next(reader.read((topic_name, 0), 0, 10))
    reader.close()
    with pytest.raises(AuthenticationFailed, match=refused):
        records.first_rows("east", settings, {(topic_name, 0): 0})


PARTITIONS, RECORDS, SIZE, BYTES_PER_SECOND = 16, 56_000, 534, 1 << 20


@pytest.fixture
def slow(linked: LinkedCluster, topic_name: str) -> Iterator[Link]:
    """The open link at a megabyte a second, and a backlog behind it that takes half a minute; one
    answer of the size that is asked for over a fast link would have all of it."""
    create_topic(linked.cluster.bootstrap_servers, topic_name, PARTITIONS)
    write(
        linked.cluster.bootstrap_servers, topic_name, numbered(RECORDS, PARTITIONS, size=SIZE // 6)
    )
    linked.open.bytes_per_second, linked.open.passed = BYTES_PER_SECOND, 0
    yield linked.open
    linked.open.bytes_per_second = None


def assert_landed_once(run: Run, link: Link, topic: str) -> None:
    """All of it is staged, each record once, and came over the link about once."""
    (found,) = now_of(run.lake).rows(
        "SELECT count(*) AS n, count(DISTINCT concat(partition, '-', offset)) AS each FROM "
        f"records WHERE topic = '{topic}'"
    )
    assert found == {"n": RECORDS, "each": RECORDS}
    # Each batch ends within batches of Kafka's, which come once more, and planning reads single
    # records.
    assert link.passed < 1.3 * RECORDS * (SIZE + 20)


@pytest.mark.slow
def test_a_backlog_comes_over_a_slow_link_whatever_starts_the_query_anew(
    spark: SparkSession,
    linked: LinkedCluster,
    clusters: ClusterPair,
    slow: Link,
    topic_name: str,
    tmp_path: Path,
) -> None:
    topology = write_topology(
        tmp_path, slow.address, clusters.west, {"topics": [f"{topic_name}.*"]}
    )
    seen: list[int] = []
    with replicating(spark, topology) as run:

        def landed() -> int:
            count = int(now_of(run.lake).rows("SELECT count(*) AS n FROM records")[0]["n"])
            if count not in seen[-1:]:
                seen.append(count)
                if len(seen) in (2, 3):  # topics that are selected: the query is begun anew
                    create_topic(linked.cluster.bootstrap_servers, f"{topic_name}-{len(seen)}")
            return count

        until(lambda: landed() >= RECORDS, "all is staged", 240)
    assert any(0 < count < RECORDS for count in seen), f"no progress was seen on the way: {seen}"
    assert_landed_once(run, slow, topic_name)


@pytest.mark.slow
def test_a_run_with_an_end_comes_to_it_over_a_slow_link(
    spark: SparkSession, clusters: ClusterPair, slow: Link, topic_name: str, tmp_path: Path
) -> None:
    topology = write_topology(tmp_path, slow.address, clusters.west, {"topics": [topic_name]})
    run = replicate_once(spark, topology)
    assert len({report.stage_version for report in run.reports}) >= 2
    assert_landed_once(run, slow, topic_name)
    assert_same(run.lake, slow.address, clusters.west, {topic_name: f"east.{topic_name}"}, RECORDS)


def _batches(log: Log, topic: str, partition: int) -> list[pa.RecordBatch]:
    return [batch for _, batch in log.read({(topic, partition): (0, 10)})]


@pytest.fixture
def large_record(linked: LinkedCluster, topic_name: str) -> Iterator[int]:
    """One record, whose size is given, that takes more than twice as long over the open link as
    something silent is waited for."""
    size = int(2.5 * PATIENCE * BYTES_PER_SECOND)
    bootstrap = linked.cluster.bootstrap_servers
    create_topic(bootstrap, topic_name, max_message_bytes=str(2 * size))
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 2 * size})
    producer.produce(topic_name, os.urandom(size))
    assert producer.flush(30) == 0
    linked.open.bytes_per_second = BYTES_PER_SECOND
    yield size
    linked.open.bytes_per_second = None


@pytest.mark.wide(because="of a record over a slow link bytes come for seconds")
def test_a_record_that_is_on_its_way_is_waited_for(
    linked: LinkedCluster,
    log_of: Callable[[Mapping[str, str]], Log],
    large_record: int,
    topic_name: str,
) -> None:
    log = log_of({"bootstrap.servers": linked.open.address})
    began = time.monotonic()
    ((_, rows),) = log.read({(topic_name, 0): (0, 1)})
    assert len(rows["value"][0].as_py()) == large_record
    assert time.monotonic() - began > 2 * PATIENCE, "the link is no slow one"


@SLOW
def test_a_record_that_stops_on_its_way_is_told(
    linked: LinkedCluster,
    log_of: Callable[[Mapping[str, str]], Log],
    large_record: int,
    topic_name: str,
) -> None:
    log = log_of({"bootstrap.servers": linked.open.address})
    passed = linked.open.passed

    def stop() -> None:
        until(lambda: linked.open.passed > passed + large_record // 4, "some of it has come", 30)
        linked.open.bytes_per_second = 1

    stopping = in_thread("stops the link", stop)
    with pytest.raises(KafkaException):
        list(log.read({(topic_name, 0): (0, 1)}))
    stopping.result()
