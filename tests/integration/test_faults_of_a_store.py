"""A store that misbehaves, for a moment or for long: nothing is lost or twice, operators hear of
what lasts, and a run goes on, or comes to its end. A real server, behind a link."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml

from mirrorlake.lake.renewed_options import LEFT_SECONDS
from tests.support.clusters import ClusterPair
from tests.support.commands import forked
from tests.support.instance_profile import instance_profile
from tests.support.kafka import create_topic, read_topic
from tests.support.lending_workspace import lending_workspace
from tests.support.load import load
from tests.support.object_store import KEY, SECRET, Store
from tests.support.replication import finish, start_run, write_topology
from tests.support.store_link import Fault, Request, StoreLink, link_to
from tests.support.topologies import fill
from tests.support.waiting import until

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

    @contextmanager
    def running(self, **environment: str) -> Iterator[None]:
        """`mirrorlake run` for the time of the block; it ends in order."""
        run = start_run(self.topology, **environment)
        try:
            yield
        finally:
            run.terminate()
            code = finish(run, 120)
        assert code == 0, self.said()

    def said(self) -> str:
        """The end of what the run said."""
        return (self.topology.parent / "run.log").read_text(encoding="utf-8")[-8_000:]

    def at_target(self) -> list[bytes | None]:
        """The values of all records at the target."""
        parts = read_topic(self.clusters.west, f"east.{self.topic}")
        return [record.value for part in parts for record in part]

    def comes_through(self) -> None:
        """Wait until all that was written is at the target."""
        try:
            until(
                lambda: len(self.at_target()) >= self.written, "all records are at the target", 150
            )
        except AssertionError as late:
            raise AssertionError(f"{late}; the last that it said: {self.said()}") from late

    def incidents(self) -> list[str]:
        """The kinds of open incidents."""
        return [row["kind"] for row in self.ask("sql", "SELECT kind FROM open_incidents")]

    def is_whole(self) -> None:
        """Each record is staged once, is at the target once, and is mapped."""
        there = self.at_target()
        assert Counter(there) == {b"a:%d" % number: 1 for number in range(self.written)}
        (staged,) = self.ask(
            "sql", f"SELECT count(*) AS n FROM records WHERE topic = '{self.topic}'"
        )
        (mapped,) = self.ask(
            "sql", f"SELECT sum(record_count) AS n FROM offset_map WHERE topic = '{self.topic}'"
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


#: The tables through which records go; that of incidents is not among them.
WAYS = ("records", "offset_map", "latency")


def meets(fault: Fault, tables: Sequence[str]) -> Any:
    """What goes wrong with each put to some tables."""

    def of(request: Request) -> Fault | None:
        is_one = request.kind == "PUT" and any(f"/{table}/" in request.key for table in tables)
        return fault if is_one else None

    return of


@pytest.mark.law("nothing silently", "exactly once", "exact map", lake="store")
@pytest.mark.parametrize(
    ("fault", "tables"),
    [("503", WAYS), ("expired", WAYS), ("torn", WAYS), ("503", ("offset_map",))],
    ids=["503", "expired", "torn", "503 to the map"],
)
def test_a_fault_that_lasts_is_an_incident_while_it_does(
    scene: Scene, fault: Fault, tables: Sequence[str]
) -> None:
    scene.write(20)
    with scene.running():
        scene.comes_through()
        assert scene.incidents() == []
        scene.link.fault = meets(fault, tables)
        scene.write(20)
        until(scene.incidents, f"an incident; it said {scene.said()}", 150.0)
        status = scene.run("status")
        assert status.returncode == 1 and "Traceback" not in status.stderr
        scene.link.fault = lambda _request: None
        scene.write(20)
        scene.comes_through()
        until(lambda: not scene.incidents(), "the incident is over", 60.0)
    scene.is_whole()


@pytest.mark.parametrize(
    ("fault", "kinds", "each"),
    [("slow", ("PUT",), 2), ("half", ("GET", "LIST"), 7), ("torn", ("GET", "LIST"), 2)],
    ids=["slow puts", "half of an answer", "no answer"],
)
def test_a_store_that_is_slow_or_tears_what_it_says(
    scene: Scene, fault: Fault, kinds: Sequence[str], each: int
) -> None:
    """Records come late, and nothing else happens. Of answers that break off only each seventh
    does: delta-rs asks for none again, so a turn that reads more often than that never ends."""
    scene.write(20)
    with scene.running():
        scene.comes_through()
        scene.link.fault = lambda request: (
            fault if request.kind in kinds and not len(scene.link.requests) % each else None
        )
        for _ in range(3):
            scene.write(20)
            scene.comes_through()
        assert scene.link.met > 3
        scene.link.fault = lambda _request: None
    scene.is_whole()
    assert scene.ask("status")["healthy"]


def test_small_batches_are_further_apart_where_a_commit_takes_long(scene: Scene) -> None:
    """Five times as far as one takes, up to a second: the nearest times that Spark asks at."""
    commits = dict[str, float]()

    def slow(request: Request) -> Fault | None:
        if request.kind != "PUT" or "/records/_delta_log/" not in request.key:
            return None
        commits.setdefault(request.key, time.monotonic())
        return "slow"

    scene.link.slow_seconds, scene.link.fault = 0.15, slow
    with scene.running(), load(scene.clusters.east, scene.topic, 2) as records:
        until(lambda: len(commits) >= 20, "commits", 90.0)
        began = sorted(commits.values())[-10:]
    gaps = [later - earlier for earlier, later in zip(began, began[1:], strict=False)]
    assert median(gaps) > 0.9, gaps
    assert scene.run("run", "--once").returncode == 0
    assert len(scene.at_target()) == len(set(scene.at_target())) == records.written


def test_half_a_minute_of_silence(scene: Scene) -> None:
    """Nothing at all is answered, and connections stay open."""
    scene.link.silent_seconds = 40.0
    scene.write(20)
    with scene.running():
        scene.comes_through()
        scene.link.fault = lambda _request: "silent"
        scene.write(20)
        until(lambda: scene.link.met, "a request meets the silence")
        scene.link.closed.wait(30.0)
        scene.link.fault = lambda _request: None
        scene.comes_through()
    scene.is_whole()


def test_credentials_that_expire_are_renewed_in_the_middle(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the instance: the file has none."""
    with instance_profile("first", 310.0) as profile:
        document = yaml.safe_load(scene.topology.read_text(encoding="utf-8"))
        storage = document["lake"]["storage"]
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del storage[name]
            monkeypatch.delenv(name, raising=False)
        storage["AWS_METADATA_ENDPOINT"] = profile.address
        scene.topology.write_text(yaml.safe_dump(document), encoding="utf-8")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", profile.address)
        scene.write(20)
        with scene.running():
            scene.comes_through()
            profile.key, known = "second", len(scene.link.requests)
            scene.link.fault = lambda request: "expired" if request.access_key == "first" else None
            scene.write(20)
            scene.comes_through()
            keys = {request.access_key for request in scene.link.requests[known:]}
            assert "second" in keys
        scene.is_whole()


def test_credentials_that_a_workspace_lends_are_renewed_in_the_middle(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has none, nor has this machine. Those of a table that is open are renewed, too."""
    document = yaml.safe_load(scene.topology.read_text(encoding="utf-8"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        del document["lake"]["storage"][name]
        monkeypatch.delenv(name, raising=False)
    document["lake"]["credentials"] = "unity_catalog"
    scene.topology.write_text(yaml.safe_dump(document), encoding="utf-8")
    with lending_workspace() as workspace:
        for variable, value in workspace.environment.items():
            monkeypatch.setenv(variable, value)
        workspace.seconds = LEFT_SECONDS + 5
        scene.write(20)
        with scene.running():
            scene.comes_through()
            asked, workspace.key = len(workspace.asked), "second"
            until(lambda: len(workspace.asked) > asked, "they are asked for again", 180.0)
            known = len(scene.link.requests)
            scene.link.fault = lambda request: "expired" if request.access_key == "first" else None
            for _ in range(3):
                scene.write(20)
                scene.comes_through()
            keys = [request.access_key for request in scene.link.requests[known:]]
            assert keys.count("second") > 0 and keys.count("first") < 5, keys
        scene.is_whole()
        assert scene.ask("status")["healthy"]
    assert {body["url"] for _, body in workspace.asked} == {document["lake"]["path"]}
