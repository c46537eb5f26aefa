"""A target's broker that dies at the end of a transaction: the call that then hangs in librdkafka
is given up."""

import os
from pathlib import Path
from threading import Thread

import pytest

from mirrorlake.devtools.local.clusters import start_clusters, stop_clusters
from mirrorlake.produce import patience
from mirrorlake.produce.task import produce_shard
from mirrorlake.produce.writer import ShardWriter
from tests.support.kafka import create_topic, read_topic
from tests.support.shards import chunks, job_for, produced


@pytest.mark.wide(because="a broker dies, and librdkafka's own time for a call has to pass")
def test_the_end_of_a_transaction_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records are acknowledged, and the group's coordinator dies before the position is: an
    attempt ends in time, and the next one, when the broker is back, writes each record once."""
    monkeypatch.setattr(patience, "CALL_SECONDS", 3.0)
    cluster = start_clusters(["west"], tmp_path)["west"]
    topic, rows = f"lost-{os.urandom(4).hex()}", 100
    wait = ShardWriter._wait

    def die_behind(*args: object) -> None:
        wait(*args)  # type: ignore[arg-type]
        cluster.kill()

    try:
        create_topic(cluster.bootstrap_servers, topic)
        job = job_for(cluster.bootstrap_servers, topic, rows)
        plan = job.plan.partitions[0]
        failed: list[Exception] = []

        def attempt() -> None:
            try:
                produce_shard(job, chunks(plan, rows, 100, 50))
            except Exception as error:  # noqa: BLE001 - of interest is that it ends
                failed.append(error)

        monkeypatch.setattr(ShardWriter, "_wait", die_behind)
        first = Thread(target=attempt, daemon=True)
        first.start()
        first.join(60)
        assert not first.is_alive() and failed, "it waits for a coordinator that is gone"
        monkeypatch.setattr(ShardWriter, "_wait", wait)
        cluster.start_broker()
        result = produced(job, chunks(plan, rows, 100, 50))
        assert result.column("record_count").to_pylist() == [rows]
        assert len(read_topic(cluster.bootstrap_servers, topic)[0]) == rows
    finally:
        stop_clusters({"west": cluster})
