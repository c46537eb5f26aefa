"""What the stage held at a time, by what landing notes of real logs: transactions whole, or not
there."""

import random
import threading
import time
from collections import defaultdict
from datetime import datetime, timezone
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

import mirrorlake
from mirrorlake.lake.as_of import staged_as_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.reader import Reader
from tests.support.clusters import ClusterPair
from tests.support.kafka import NewRecord, create_topic, delete_topic, read_topic, write
from tests.support.replication import lake_of, replicate_once, replicating, write_topology
from tests.support.waiting import until

#: How often producers write, and come to rest.
BURSTS = 4


def staged(lake: Reader, topic: str) -> list[tuple[int, int, bytes]]:
    lake.refresh()
    rows = lake.rows(f"SELECT partition, offset, value FROM records WHERE topic = '{topic}'")
    return [(row["partition"], row["offset"], row["value"]) for row in rows]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def write_transactions(bootstrap: str, topic: str, number: int) -> None:
    """Some transactions over all partitions, slow enough to be seen open; the value says which one
    it is, and its size."""
    chance = random.Random(number)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{number}", "linger.ms": 0}
    )
    producer.init_transactions(30)
    for done in range(5):
        producer.begin_transaction()
        count = chance.randint(2, 12)
        for _ in range(count):
            producer.produce(topic, f"{number}-{done}:{count}", partition=chance.randrange(3))
            producer.flush(30)
            time.sleep(chance.random() / 50)
        if chance.random() < 0.2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)


def write_burst(bootstrap: str, topic: str, burst: int) -> None:
    """Transactions of two producers, one through the other."""
    writers = [
        threading.Thread(target=write_transactions, args=(bootstrap, topic, 2 * burst + number))
        for number in (0, 1)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    time.sleep(0.5)  # markers are written behind the answer to a commit


@pytest.mark.wide("unit/offsets/test_as_of.py::test_a_transaction_is_whole_or_not_there")
def test_transactions_that_go_on_while_it_lands_are_whole_as_of_any_time(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [f"{topic_name}.*"]}
    )
    plain = f"{topic_name}-plain"
    create_topic(clusters.east, topic_name, 3)
    create_topic(clusters.east, plain, 1)
    moments = [now_ms()]
    beside = DuckLake(tmp_path / "lake")  # what the replicator reads stays as it has it
    with replicating(spark, topology):
        for burst in range(BURSTS):
            write_burst(clusters.east, topic_name, burst)
            write(clusters.east, plain, [NewRecord(b"%d" % burst)])
            last = b"%d" % burst
            until(lambda last=last: any(row[2] == last for row in staged(beside, plain)))  # type: ignore[misc]
            moments.append(now_ms())
    lake = lake_of(spark, topology)
    rows = staged(beside, topic_name)
    chance = random.Random(0)
    between = [chance.randint(moments[0], moments[-1]) for _ in range(20)]
    seen = {}
    for moment in [*moments, *between]:
        ends = staged_as_of(lake.reader, "east", moment)
        if not all(end.whole for end in ends.values()):
            continue
        found: dict[bytes, int] = defaultdict(int)
        for partition, offset, value in rows:
            there = ends.get((topic_name, partition))
            found[value] += there is not None and offset < there.end
        assert all(count in (0, int(value.split(b":")[1])) for value, count in found.items()), (
            moment
        )
        seen[moment] = sum(count > 0 for count in found.values())
    # Between the bursts all is at rest, and what was landed by then is there.
    assert [seen.get(moment) for moment in moments] == sorted({seen[moment] for moment in moments})
    # What is no transaction ends with the time itself, and no earlier.
    times = {
        row["offset"]: row["ms"]
        for row in beside.rows(
            f"SELECT offset, unix_millis(timestamp) AS ms FROM records WHERE topic = '{plain}'"
        )
    }
    end = staged_as_of(lake.reader, "east", moments[1])[plain, 0].end
    assert times[end - 1] <= moments[1] < times[end]


@pytest.mark.wide("unit/offsets/test_as_of.py::test_a_transaction_is_whole_or_not_there")
def test_in_the_middle_of_a_transaction(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """All of it, or nothing of it: as of a time between its records, and one between its end and
    the next landing."""
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(clusters.east, topic_name, 2)
    write(clusters.east, topic_name, [NewRecord(b"before", partition=number) for number in (0, 1)])
    replicate_once(spark, topology)
    producer = Producer({"bootstrap.servers": clusters.east, "transactional.id": topic_name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce(topic_name, b"inside", partition=partition)
        producer.flush(30)
        time.sleep(0.05)
        if partition == 0:
            middle = now_ms()
            time.sleep(0.05)
    replicate_once(spark, topology)  # while it is open
    producer.commit_transaction(30)
    committed = now_ms()
    time.sleep(0.01)
    replicate_once(spark, topology)
    lake = lake_of(spark, topology)
    rows = staged(lake.reader, topic_name)

    def held(moment: int) -> list[bytes]:
        ends = staged_as_of(lake.reader, "east", moment)
        return sorted(
            value for partition, offset, value in rows if offset < ends[topic_name, partition].end
        )

    assert held(middle) == [b"before"] * 2
    # landed later, and all of it is from before
    assert held(committed) == [b"before"] * 2 + [b"inside"] * 2
    assert held(now_ms()) == [b"before"] * 2 + [b"inside"] * 2
    # And so `restore` takes it.
    for moment, values in ((middle, [b"before"]), (committed, [b"before", b"inside"])):
        if moment == committed:
            delete_topic(clusters.west, topic_name)
        as_of = datetime.fromtimestamp(moment / 1_000, timezone.utc)
        sent = mirrorlake.open(topology, spark=spark).restore(
            "east", "west", [topic_name], as_of=as_of
        )
        assert sent.complete and not sent.warnings and sent.records == 2 * len(values)
        assert [
            [record.value for record in part] for part in read_topic(clusters.west, topic_name)
        ] == [values] * 2
        assert {row["partition"] for row in sent.reached} == {0, 1}
        assert all(row["newest_at"] <= as_of for row in sent.reached)
