"""What a flow that has nothing to do asks of an object store, counted in front of a real one, and
what that is a day. docs/cost.md has the figures."""

import json
import re
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.support.clusters import ClusterPair, own_topics
from tests.support.commands import forked
from tests.support.kafka import create_topic, record_count
from tests.support.object_store import KEY, SECRET, Store
from tests.support.replication import finish, start_run, write_topology
from tests.support.store_link import Request, link_to
from tests.support.topologies import fill
from tests.support.waiting import until

pytestmark = pytest.mark.slow

DAY = 86_400
#: Until what a start brings is over; and for how long requests are counted: two pauses of
#: `lake.idle_seconds`, and some renewals of leases.
SETTLED_SECONDS, COUNTED_SECONDS = 45.0, 240.0


def test_an_idle_flow_asks_for_little(
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    object_store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With all that a flow does by default: heartbeats, checkpoints and positions of groups."""
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    flow = {
        "topics": [topic_name],
        "emit_heartbeats_enabled": True,
        "emit_checkpoints_enabled": True,
    }
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow)
    create_topic(clusters.east, topic_name, 2)
    fill(clusters.east, topic_name, "a", 20)
    with own_topics(clusters), link_to(object_store.address) as link:
        Store(link.address).hold(topology, topic_name)
        run = start_run(topology)
        try:
            mirror = f"east.{topic_name}"
            until(lambda: record_count(clusters.west, mirror) == 20, "it replicates")
            pause = threading.Event()
            pause.wait(SETTLED_SECONDS)
            began = len(link.requests)
            pause.wait(COUNTED_SECONDS)
            requests = link.requests[began:]
            status = forked(["-c", str(topology), "status", "--json"], tmp_path)
            fill(clusters.east, topic_name, "a", 20, start=20)
            late = until(lambda: record_count(clusters.west, mirror) == 40, "it goes on")
            run.terminate()
        finally:
            code = finish(run)
    assert code == 0
    assert status.returncode == 0, status.stdout
    (row,) = json.loads(status.stdout)["flows"]
    assert row["standing"] == "caught up"
    assert late < 15, "what comes after a rest is mirrored at once"
    a_day = {
        kind: round(count * DAY / COUNTED_SECONDS)
        for kind, count in Counter(request.kind for request in requests).items()
    }
    asked = Counter((request.kind, _table_of(request)) for request in requests)
    told = json.dumps({**a_day, "counted": [[*key, n] for key, n in sorted(asked.items())]})
    (tmp_path / "requests.json").write_text(told, encoding="utf-8")
    dear = sum(a_day.get(kind, 0) for kind in ("PUT", "POST", "LIST"))
    assert dear <= 10_000, told
    assert a_day["GET"] + a_day.get("HEAD", 0) <= 100_000, told


def _table_of(request: Request) -> str:
    """What of the lake a request is about, without what is of one commit."""
    below = request.key.partition("/")[2]
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]{4,}", "*", below)
