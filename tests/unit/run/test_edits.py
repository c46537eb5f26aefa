"""What a running replicator does with an edit of its topology file that cannot be in force yet. No
Kafka, no Spark."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.checks.preflight import Preflight
from mirrorlake.config.topology import load_topology
from mirrorlake.errors import ClusterUnreachable, TopologyError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.changes import Change
from mirrorlake.lake.incidents import Incident, IncidentKey
from mirrorlake.run import edits as module
from mirrorlake.run.edits import EDIT, RETRY_SECONDS, Edits, TopologyWatch

FILE = """\
clusters: {east: {bootstrap_servers: "127.0.0.1:1"}, west: {bootstrap_servers: "127.0.0.1:2"}}
lake: {path: %s}
flows: {east->west: {topics: [%s]}}
"""


class News:
    """The operators' tables, in memory: open incidents, and changes."""

    def __init__(self) -> None:
        self.open: dict[tuple[str, str], str] = {}
        self.changes: list[tuple[str, str]] = []
        self.incidents = self
        self.is_away = False

    def report(self, incidents: Iterable[Incident]) -> None:
        """An incident is open once."""
        self._answer()
        for flow, kind, error in incidents:
            self.open.setdefault((flow, kind), str(error))

    def close(self, over: Callable[[IncidentKey], bool]) -> None:
        """Close what is over."""
        self.open = {
            place: text for place, text in self.open.items() if not over(IncidentKey(*place))
        }

    def record(self, flow: str, changes: list[Change]) -> None:
        """A change."""
        self._answer()
        self.changes += [(flow, change.outcome) for change in changes]

    def _answer(self) -> None:
        if self.is_away:
            raise OSError("the store is away")


class Running:
    """A replicator whose file is edited; `refusal` is what the clusters say of the edit."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = directory / "mirrorlake.yml"
        self.refusal: Exception | None = None
        self.applied: list[tuple[str, ...]] = []
        self.now = 0.0
        self.news = News()
        self.edit("a")
        topology = load_topology(self.path)
        monkeypatch.setattr(module, "judge", self.judge)
        nothing: Any = None
        news: Any = self.news
        self.connections, self.flows = Connections(topology), topology.active_flows()
        watch = TopologyWatch(self.path, topology, lambda: self.now)
        self.edits = Edits(watch, nothing, news, None, self.apply)
        self.edits.take_over(self.connections, self.flows)

    def edit(self, topic: str, lake: str = "./lake") -> None:
        """Somebody writes the file."""
        self.path.write_text(FILE % (lake, topic), encoding="utf-8")

    def judge(self, _lake: object, connections: Connections, flows: Any) -> Preflight:
        """What the clusters say."""
        if self.refusal is not None:
            raise self.refusal
        return Preflight(connections, tuple(flows), {})

    def apply(self, preflight: Preflight) -> None:
        """What is in force from then on."""
        self.applied += [flow.settings.topics for flow in preflight.flows]
        self.connections, self.flows = preflight.connections, list(preflight.flows)

    def poll(self, seconds: float = RETRY_SECONDS) -> None:
        """The next poll of the file."""
        self.now += seconds
        self.edits.take_over(self.connections, self.flows)


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A replicator whose file names topic a."""
    return Running(tmp_path, monkeypatch)


def test_an_edit_while_a_cluster_is_silent_is_told_and_in_force_when_it_answers(
    running: Running,
) -> None:
    running.edit("b")
    running.refusal = ClusterUnreachable("cluster west does not answer", alias="west")
    for _ in range(3):
        running.poll()
    assert not running.applied and not running.news.changes
    assert "west does not answer; it is tried again" in running.news.open["east->west", EDIT]
    running.refusal = None
    running.poll(RETRY_SECONDS - 1)
    assert not running.applied
    running.poll(1)
    assert running.applied == [("b",)] and not running.news.open
    assert running.news.changes == [("east->west", "done")]
    running.poll()
    assert running.applied == [("b",)], "once"


def test_a_secret_that_is_missing_yet_is_waited_for(running: Running) -> None:
    running.edit("b")
    running.refusal = TopologyError("${secret:kafka/west} has no value")
    running.poll()
    running.poll()
    assert running.news.changes == [("east->west", "refused")], "told once"
    running.refusal = None
    running.poll()
    assert running.applied == [("b",)] and not running.news.open


def test_an_invalid_edit_is_an_incident_until_the_next_one(running: Running) -> None:
    running.edit("[")
    running.poll()
    running.poll()
    assert not running.applied and running.news.changes == [("east->west", "refused")]
    assert "tried again" not in running.news.open["east->west", EDIT]
    running.edit("a")
    running.poll()
    assert not running.news.open and running.news.changes[-1] == ("east->west", "done")


def test_another_lake_needs_a_start(running: Running) -> None:
    running.edit("a", "./other")
    running.poll()
    running.poll()
    assert not running.applied and "stop and start" in running.news.open["east->west", EDIT]
    assert "tried again" not in running.news.open["east->west", EDIT]


@pytest.mark.parametrize(
    "block", ["metrics: 127.0.0.1:9404", "tracking: {enabled: false}", "availability: kafka"]
)
def test_what_is_read_at_the_start_alone_needs_one(running: Running, block: str) -> None:
    """Said to be in force, it would be ignored until then."""
    running.path.write_text(f"{FILE % ('./lake', 'a')}{block}\n", encoding="utf-8")
    running.poll()
    name = block.partition(":")[0]
    assert f"{name} cannot be changed" in running.news.open["east->west", EDIT]
    assert not running.applied and running.news.changes == [("east->west", "refused")]


def test_an_invalid_edit_is_an_incident_once_the_lake_takes_one(running: Running) -> None:
    """The file stayed out of force, and no operator heard of it."""
    running.edit("[")
    running.news.is_away = True
    for _ in range(2):
        with pytest.raises(OSError, match="away"):
            running.poll()
    running.news.is_away = False
    running.poll()
    assert "tried again" not in running.news.open["east->west", EDIT]
    running.edit("a")
    running.poll()
    assert not running.news.open
