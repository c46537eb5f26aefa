"""A store that misbehaves for a moment: nothing is lost or twice, and a run comes to its end. A
real server, behind a link that loses answers."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.clusters import ClusterPair
from tests.support.commands import forked
from tests.support.kafka import create_topic, read_topic
from tests.support.object_store import KEY, SECRET, Store
from tests.support.replication import write_topology
from tests.support.store_link import Fault, Request, StoreLink, link_to
from tests.support.topologies import fill

pytestmark = pytest.mark.slow


@dataclass
class Scene:
    """A flow of one topic, its lake behind a link."""

    clusters: ClusterPair
    topology: Path
    topic: str
    link: StoreLink
    written: int = 0

    def write(self, count: int) -> None:
        fill(self.clusters.east, self.topic, "a", count, start=self.written)
        self.written += count

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return forked(["-c", str(self.topology), *words], self.topology.parent)

    def ask(self, *words: str) -> Any:
        """What a command answers as JSON; the code that it ends with may be any."""
        done = self.run(*words, "--json")
        assert "Traceback" not in done.stderr, done.stderr[-4_000:]
        return json.loads(done.stdout)

    def is_whole(self) -> None:
        """Each record is staged once, is at the target once, and is mapped."""
        there = [
            record.value
            for part in read_topic(self.clusters.west, f"east.{self.topic}")
            for record in part
        ]
        assert Counter(there) == {b"a:%d" % number: 1 for number in range(self.written)}
        (staged,) = self.ask(
            "sql", f"SELECT count(*) AS n FROM records WHERE topic = '{self.topic}'"
        )
        (mapped,) = self.ask(
            "sql",
            f"SELECT sum(record_count) AS n FROM offset_map WHERE topic = '{self.topic}'",
        )
        assert staged["n"] == mapped["n"] == self.written


@pytest.fixture
def scene(
    clusters: ClusterPair,
    topic_name: str,
    tmp_path: Path,
    object_store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Scene]:
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
    create_topic(clusters.east, topic_name, 2)
    with link_to(object_store.address) as link:
        Store(link.address).hold(topology, topic_name)
        yield Scene(clusters, topology, topic_name, link)


class FirstAnswers:
    """The answer to the first put of each commit is lost, and no other."""

    def __init__(self) -> None:
        self.met = set[str]()

    def __call__(self, request: Request) -> Fault | None:
        is_commit = "_delta_log" in request.key and request.key.endswith(".json")
        if request.kind != "PUT" or not is_commit or request.key in self.met:
            return None
        self.met.add(request.key)
        return "torn"


def test_a_run_in_which_the_answer_to_each_commit_is_lost(scene: Scene) -> None:
    """A new lake, and one that is there."""
    scene.link.fault = faults = FirstAnswers()
    for _ in range(2):
        scene.write(20)
        done = scene.run("run", "--once")
        assert done.returncode == 0, done.stderr[-4_000:]
    assert len(faults.met) >= 6
    scene.link.fault = lambda _request: None
    scene.is_whole()
    assert scene.ask("status")["healthy"]
