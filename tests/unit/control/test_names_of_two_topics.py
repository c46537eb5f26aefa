"""Two topics of a source that a policy of the user's own calls the same never become one, also
where the second one is made while the flow runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.checks import preflight
from mirrorlake.config.topology import load_topology
from mirrorlake.control.topic_sync import TargetTopics
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.run import plan
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, no_session, opened, write_file

POLICY = """
class Lower:
    def remote_topic(self, source_alias, topic):
        return topic.lower()
    def source_of(self, topic):
        return None
    def upstream_topic(self, topic):
        return None
"""


def refused_by_plan(
    monkeypatch: pytest.MonkeyPatch, connections: Connections, lake: Lake
) -> dict[str, str]:
    """What `plan` says of topics that would not be mirrored."""
    for name in ("access_problems", "own_topic_problems"):
        monkeypatch.setattr(preflight, name, lambda *_: [])
    for name in ("limit_problems", "unseen_problems"):
        monkeypatch.setattr(plan, name, lambda *_, **__: [])
    nothing = SimpleNamespace()
    monkeypatch.setattr(plan, "planned_groups", lambda *_: nothing)
    flows = [connections.topology.flow(FLOW)]
    (document,) = plan.make_plan(connections, flows, lake=lake.now)["flows"]
    return {
        topic["topic"]: topic["reason"]
        for topic in document["topics"]
        if topic["action"] == "refuse"
    }


@pytest.mark.parametrize("restarted", [False, True])
def test_a_topic_whose_name_at_the_target_is_taken_is_not_mirrored(
    tmp_path: Path, restarted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records would be taken for those of the other one, whose position is at the target. The
    other one may be gone at the source by the next start."""
    (tmp_path / "lower_names.py").write_text(POLICY, encoding="utf-8")
    settings = {"policy": "lower_names.py:Lower", "sync_topic_acls_enabled": False}
    settings |= {"sync_topic_configs_enabled": False, "emit_heartbeats_enabled": False}
    topology = load_topology(write_file(tmp_path, flows={FLOW: settings}))
    lake = opened(no_session, tmp_path / "mirrorlake.yml")[0]
    east: Any = MemoryCluster("east", {"orders": [5]})
    west = MemoryCluster("west")
    connections = Connections(topology, {"east": east, "west": west})

    def process() -> tuple[TargetTopics, EventLog]:
        log = EventLog(lake)
        return TargetTopics(topology.flow(FLOW), Deployment(lake, connections, log)), log

    topics, log = process()
    topics.refresh()
    assert topics.produced_topic("orders") == "orders"
    east.make("Orders", 7)
    if restarted:
        east.delete("orders")
        topics, log = process()
    assert topics.produced_topic("Orders") is None, "it may be landed before anything is compared"
    topics.refresh()
    assert topics.remote_topic("Orders") is None and topics.remote_topic("orders") == "orders"
    (told,) = lake.ask_table("open_incidents")
    assert (told["kind"], told["topic"]) == ("topic_refused", "Orders")
    assert "mirrors topic orders into orders already" in told["detail"]
    if restarted:  # else two topics of one name are there, which refuses both
        refused = refused_by_plan(monkeypatch, connections, lake)
        assert refused.keys() == {"Orders"} and refused["Orders"] in told["detail"]
