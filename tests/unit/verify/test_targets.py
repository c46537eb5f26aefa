"""Target topics that are not the ones that a flow wrote to: what `verify` says of each."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control import target_generations
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import IncidentKey, Incidents
from mirrorlake.lake.targets import note_targets
from mirrorlake.offsets.generations import NotedTarget
from mirrorlake.testing import MemoryCluster
from mirrorlake.verify.targets import Targets, compared_targets
from tests.support.lake_rows import FLOW, append, no_session, opened, run_row, write_file

GONE = "east.orders is not there any more, or is not the topic that the flow wrote to"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that is gone is not waited for."""
    monkeypatch.setattr(target_generations, "GONE_SECONDS", 0.0)


class Scene:
    """A flow that has noted its target topics, and may have records in `orders`."""

    def __init__(self, directory: Path, mapped: bool) -> None:
        file = write_file(directory)
        self.lake = opened(no_session, file)[0]
        self.west = MemoryCluster("west", {"east.orders": [0], "east.payments": [0]})
        clusters: Any = {"east": MemoryCluster("east"), "west": self.west}
        self.connections = Connections(load_topology(file), clusters)
        topics = ("orders", "payments")
        known = self.west.identities([f"east.{topic}" for topic in topics])[0]
        note_targets(
            self.lake,
            FLOW,
            {
                (topic, f"east.{topic}"): NotedTarget(0, known[f"east.{topic}"].topic_id)
                for topic in topics
            },
        )
        if mapped:
            append(self.lake, "offset_map", [run_row(0, 9)])

    def compared(self) -> Targets:
        deployment = Deployment(self.lake, self.connections, EventLog(self.lake))
        flow = self.connections.topology.flow(FLOW)
        return compared_targets(flow, deployment, lambda _row: True)


@pytest.mark.parametrize("made_again", [False, True])
@pytest.mark.parametrize("mapped", [True, False])
def test_a_topic_that_is_gone_is_named_whether_or_not_it_had_records(
    tmp_path: Path, mapped: bool, made_again: bool
) -> None:
    """What waits at the source for one that had none yet waits for a decision all the same."""
    scene = Scene(tmp_path, mapped)
    assert scene.compared() == Targets([], frozenset(), [])
    scene.west.delete("east.orders")
    if made_again:
        scene.west.make("east.orders", 0)
    found = scene.compared()
    assert found.closed == {"orders"}
    assert [row["kind"] for row in found.gone] == (["target_gone"] if mapped else [])
    untold = [(one.topic, one.last, one.reason, one.detail) for one in found.not_compared]
    assert untold == ([] if mapped else [("orders", None, "refused", GONE)])


def test_a_topic_that_was_stopped_is_named(tmp_path: Path) -> None:
    scene = Scene(tmp_path, mapped=True)
    scene.west.delete("east.orders")
    scene.compared()
    Incidents(scene.lake).settle_all([IncidentKey(FLOW, "target_recreated", "orders")], "stop")
    found = scene.compared()
    assert (found.gone, found.closed) == ([], {"orders"})
    assert [(one.topic, one.reason) for one in found.not_compared] == [("orders", "stopped")]
