"""What an idle flow of 2,000 partitions asks its source, and writes into its lake, is bounded; and
the first record of a quiet partition comes as soon as any other."""

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mirrorlake.devtools.bench.scale import Size, make_groups, make_topics
from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.landing.quiet_logs import ALL_SECONDS
from mirrorlake.native.watch import WAIT_SECONDS
from mirrorlake.processes import cpu_seconds
from tests.support.clusters import SETTINGS
from tests.support.kafka import NewRecord, write
from tests.support.replication import finish, start_run, write_topology
from tests.support.slow_link import FETCH, LIST_OFFSETS, LinkedCluster, linked_cluster
from tests.support.waiting import until

pytestmark = pytest.mark.slow

SIZE = Size(groups=10, records=1)
#: How long an idle flow is looked at, seconds; and until when its logs are left to the watch.
IDLE_SECONDS = 40.0
SETTLED_SECONDS = ALL_SECONDS + 3 * WAIT_SECONDS
#: What an idle flow may ask its source a minute: 250 partitions in a question about offsets. With a
#: question about all partitions for each batch that may begin it were 1,400 of these alone.
REQUESTS_A_MINUTE, OFFSETS_A_MINUTE, FETCHES_A_MINUTE = 1_600, 700, 200
#: Heartbeats are landed, produced and mapped every ten seconds, samples written: of a partition at
#: which nothing happens once an hour.
COMMITS_A_MINUTE, ROWS_A_MINUTE = 60, 150


@contextmanager
def running(topology: Path) -> Iterator["subprocess.Popen[bytes]"]:
    run = start_run(topology)
    try:
        yield run
        run.send_signal(signal.SIGTERM)
        assert finish(run) == 0
    finally:
        run.kill()
        run.wait()


def commits(lake: Path) -> dict[Path, int]:
    """The commits of all tables, and how many rows each adds, rewritten ones left out."""
    return {path: rows_added(path) for path in lake.glob("*/_delta_log/*.json")}


def rows_added(commit: Path) -> int:
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    added = [action["add"] for action in actions if "add" in action]
    return sum(json.loads(add["stats"])["numRecords"] for add in added if add["dataChange"])


def ends(admin: ClusterAdmin, topics: list[str]) -> int:
    """How many partitions of mirrors have a record."""
    there = admin.topics()
    keys = [key for key in SIZE.places(topics) if key[0] in there]
    return sum(end > 0 for end in admin.end_offsets(keys, skip_silent=True).values())


def test_an_idle_flow(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    with (
        linked_cluster(tmp_path / "east") as east,
        EmbeddedCluster("west", tmp_path / "west", properties=SETTINGS) as west,
    ):
        address = east.cluster.bootstrap_servers
        source = ClusterAdmin("east", {"bootstrap.servers": address})
        make_topics(source, address, SIZE)
        make_groups(source, address, SIZE)
        flow = {
            "topics": ["bench-scale-.*"],
            "emit_heartbeats_enabled": True,
            "emit_checkpoints_enabled": True,
        }
        topology = write_topology(tmp_path, east.open.address, west.bootstrap_servers, flow)
        target = ClusterAdmin("west", {"bootstrap.servers": west.bootstrap_servers})
        mirrors = [f"east.{name}" for name in SIZE.names]
        with running(topology) as run:
            until(lambda: ends(target, mirrors) == len(SIZE.places(mirrors)), "all is there", 150)
            time.sleep(SETTLED_SECONDS)
            _is_idle(east, run.pid, tmp_path / "lake", record_property)
            quiet = SIZE.names[-1]
            before = target.end_offsets([(f"east.{quiet}", 3)])
            write(address, quiet, [NewRecord(b"first", partition=3)])
            taken = until(
                lambda: target.end_offsets([(f"east.{quiet}", 3)]) != before, "its first record", 30
            )
            assert taken < ALL_SECONDS / 2, "not only when all partitions are asked"


def _is_idle(
    east: LinkedCluster, pid: int, lake: Path, record_property: Callable[[str, object], None]
) -> None:
    asked, written, spent = Counter(east.open.requests), commits(lake), cpu_seconds([pid])
    began = time.monotonic()
    time.sleep(IDLE_SECONDS)
    minutes = (time.monotonic() - began) / 60
    more = {kind: count / minutes for kind, count in (east.open.requests - asked).items()}
    cores = (cpu_seconds([pid]) - spent) / minutes / 60
    news = commits(lake)
    news = {path: rows for path, rows in news.items() if path not in written}
    what = (
        f"a minute: requests {more}, commits {len(news) / minutes:.0f}, "
        f"rows {sum(news.values()) / minutes:.0f}; {cores:.3f} cores"
    )
    record_property("idle", what)
    assert sum(more.values()) < REQUESTS_A_MINUTE, what
    assert more[LIST_OFFSETS] < OFFSETS_A_MINUTE and more[FETCH] < FETCHES_A_MINUTE, what
    assert len(news) / minutes < COMMITS_A_MINUTE, what
    assert sum(news.values()) / minutes < ROWS_A_MINUTE, what
