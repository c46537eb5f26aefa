"""Where a flow begins is known, or it does not begin."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.starts import has_started
from mirrorlake.landing.generations import generations_of
from mirrorlake.landing.source_comparison import recreated
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run.first_start import _firsts, note_first_start
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, no_session, opened, write_file


class Source(MemoryCluster):
    """Of a log with ten records, the last six of which are of the time that is asked for."""

    def __init__(self) -> None:
        super().__init__("east", {"orders": [10, 5]})
        self.away = False

    def offsets_at(
        self, partitions: Collection[TopicAndPartition], at_ms: int
    ) -> dict[TopicAndPartition, int]:
        if self.away:
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        return {("orders", 0): 4}


@pytest.mark.parametrize(
    ("start", "firsts"), [("latest", [10, 5]), ("2026-11-27T09:00:00+00:00", [4, 5])]
)
def test_where_a_flow_begins(tmp_path: Path, start: str, firsts: list[int]) -> None:
    source: Any = Source()
    flow = load_topology(write_file(tmp_path, flows={FLOW: {"start": start}})).flow(FLOW)
    assert list(_firsts(source, flow, {"orders": 2}).values()) == firsts
    source.away = start != "latest"
    source.silent = set() if source.away else {("orders", 1)}
    # It began at the end of a log whose leader did not say where the time is, and what was there
    # since then was never mirrored.
    with pytest.raises(ReplicationError, match=f"cannot begin at {start[:4]}.* does not say where"):
        _firsts(source, flow, {"orders": 2})


def test_it_does_not_begin_where_the_source_does_not_say_which_topic_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offset would be taken for one of whichever topic of the name is landed."""
    source: Any = Source()
    lake, topology = opened(no_session, write_file(tmp_path, flows={FLOW: {"start": "latest"}}))
    deployment = Deployment.opened(lake, Connections(topology, {"east": source}))
    monkeypatch.setattr(source, "_identities", lambda _: ({}, frozenset(), {"orders": "an error"}))
    with pytest.raises(ReplicationError, match="orders is not described by cluster east: an error"):
        note_first_start(deployment, topology.flow(FLOW))
    assert not has_started(lake.now, FLOW)


@pytest.mark.parametrize("start", ["latest", "earliest"])
def test_a_topic_made_again_before_landing_begins_is_another_one(
    tmp_path: Path, start: str
) -> None:
    source: Any = Source()
    lake, topology = opened(no_session, write_file(tmp_path, flows={FLOW: {"start": start}}))
    deployment = Deployment.opened(lake, Connections(topology, {"east": source}))
    note_first_start(deployment, topology.flow(FLOW))
    source.make("orders", 20)
    # It was landed as the one before, from offset 10 on: what begins it was not mirrored, in
    # silence. Of one that is mirrored from its start, nothing is lost.
    current = generations_of(lake, "east")
    told = recreated(source.topic_ids(["orders"]), current, ())
    assert [loss.kind for loss in told] == ["topic_recreated"] * (start == "latest")
