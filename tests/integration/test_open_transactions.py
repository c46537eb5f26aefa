"""A transaction that stays open at the source holds records back: lag says so, an alert names it,
and so does failover."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from mirrorlake.config.topology import load_topology
from mirrorlake.failover import drain
from mirrorlake.kafka.connections import Connections
from tests.support.clusters import ClusterPair
from tests.support.kafka import (
    NewRecord,
    create_topic,
    numbered,
    send,
    transactional_producer,
    write,
)
from tests.support.replication import finish, start_run, write_topology
from tests.support.scene import Scene
from tests.support.waiting import until

BEFORE, BEHIND = 10, 500


@pytest.fixture
def scene(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> Scene:
    create_topic(clusters.east, topic_name)
    settings = {"topics": [topic_name], "sample_positions_interval_seconds": 1}
    topology = write_topology(tmp_path, clusters.east, clusters.west, settings)
    document = yaml.safe_load(topology.read_text(encoding="utf-8"))
    topology.write_text(
        yaml.safe_dump({**document, "objectives": {"transaction_seconds": 1}}), encoding="utf-8"
    )
    return Scene(clusters, topology, topic_name)


@pytest.fixture
def hanging(scene: Scene) -> Iterator[Producer]:
    """A transaction with one record, and records of another producer in front of it and behind
    it."""
    write(scene.clusters.east, scene.name, numbered(BEFORE))
    producer = transactional_producer(scene.clusters.east, transaction_timeout_ms=600_000)
    producer.begin_transaction()
    send(producer, scene.name, NewRecord(b"open"))
    producer.flush(20)
    write(scene.clusters.east, scene.name, numbered(BEHIND - 1))
    yield producer
    producer.abort_transaction(20)


@pytest.mark.wide(
    "simulation/test_failover_schedules.py::test_no_schedule_moves_a_group_past_what_it_has_not_read"
)
def test_it_is_told_by_lag_by_an_alert_and_by_failover(
    scene: Scene, hanging: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = (scene.name, 0)
    found = Connections(load_topology(scene.topology)).open_transactions("east", {place})[place]
    assert found.first_offset == BEFORE and abs(time.time() - found.written_ms / 1000) < 120
    run = start_run(scene.topology)
    try:
        until(lambda: lags(scene) == (0, BEHIND), "lag is told to both ends")
        until(lambda: hangs(scene), "an alert names the transaction")
        (alert,) = hangs(scene)
        assert (
            f"producer id {found.producer_id} " in alert["detail"]
            and f"{BEHIND} offsets" in alert["detail"]
        )
        assert (alert["topic"], alert["partition"]) == place and alert["value"] >= 1
    finally:
        run.terminate()
        assert finish(run) == 0
    monkeypatch.setattr(drain, "OPEN_SECONDS", 0.5)
    scene.commit("east", f"{scene.name}-g", BEFORE)
    scene.edit(groups=[f"{scene.name}-.*"])
    code, moved = scene.failover()
    assert code == 1 and not moved["drained"][0]["complete"]
    (left,) = moved["left"]
    assert f"producer id {found.producer_id}," in left and f"{BEHIND} offsets behind it" in left
    assert scene.position("west", f"{scene.name}-g") == BEFORE


def lags(scene: Scene) -> tuple[object, object]:
    """The flow's lag to the last stable offset, and to the high watermark, as `status` has it."""
    _, status = scene.call("status")
    (flow,) = status["flows"]
    return flow.get("lag_records"), flow.get("lag_to_high_watermark")


def hangs(scene: Scene) -> list[dict[str, object]]:
    """The alerts of hanging transactions, as `status` has them."""
    _, status = scene.call("status")
    return [row for row in status["alerts"] if row["alert"] == "hanging_transaction"]


@pytest.mark.wide(
    "simulation/test_failover_schedules.py::test_no_schedule_moves_a_group_past_what_it_has_not_read"
)
def test_a_failover_waits_for_transactions_that_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.run()
    producer = transactional_producer(scene.clusters.east, transaction_timeout_ms=600_000)
    producer.begin_transaction()
    send(producer, scene.name, NewRecord(b"one"))
    producer.flush(20)
    looked = drain._open

    def ends_meanwhile(*told: object) -> object:
        found = looked(*told)  # type: ignore[arg-type]
        if found:
            producer.commit_transaction(20)
        return found

    monkeypatch.setattr(drain, "_open", ends_meanwhile)
    scene.commit("east", f"{scene.name}-g", 0)
    scene.edit(groups=[f"{scene.name}-.*"])
    code, moved = scene.failover()
    assert (code, moved["left"], moved["drained"][0]["records"]) == (0, [], 1)
