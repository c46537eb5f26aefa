"""How queries end: what one is found to have missed, and one that others stop."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import (
    ClusterUnreachable,
    Fenced,
    LeaseTaken,
    MirrorlakeError,
    ReplicationError,
)
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.place import place_of
from mirrorlake.landing import worker as landing_worker
from mirrorlake.landing.broken_queries import BEGUN_ANEW
from mirrorlake.landing.checkpoints import begin_query, end_queries, forget_query
from mirrorlake.landing.source_comparison import NO_GENERATIONS, CurrentGenerations, TopicGeneration
from mirrorlake.landing.worker import LandingWorker
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import no_session, write_file

MISSED = ReplicationError("Spark reports a batch of which its tasks have read 0 of 3 offsets")


#: That what is staged was compared with what was planned.
made_up: list[int] = []


class Query:
    """A query that goes on until it is stopped; its last batch is reported only then."""

    active = began = True
    ended = False
    name = "a checkpoint"
    query: object = "Spark's"
    outgrown = False

    def __init__(self, last: MirrorlakeError | None, ended: bool) -> None:
        self.sink: Any = SimpleNamespace(failure=None, compared=last is None)
        self._last = last
        if ended:
            self.active, self.sink.failure = False, last

    def exception(self) -> MirrorlakeError | None:
        return self._last

    def covered(self) -> dict[object, int]:
        return {}

    def fenced(self) -> bool:
        return False

    def stop(self) -> None:
        self.sink.failure = self._last


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LandingWorker:
    topology = load_topology(write_file(tmp_path))
    cluster: Any = MemoryCluster("east", {"t": [5]})
    connections = Connections(topology, dict.fromkeys(topology.clusters, cluster))
    lake = PathLake(no_session, place_of(tmp_path / "lake"), tmp_path / "checkpoints")
    log: Any = MemoryLog()
    log.states = None
    deployment = Deployment(lake, connections, log)
    worker = LandingWorker("east", deployment, None, once=False)  # type: ignore[arg-type]
    planned = SimpleNamespace(
        plan=SimpleNamespace(starts={("t", 0): 0}), current_generations=NO_GENERATIONS
    )
    monkeypatch.setattr(worker, "_plan", lambda _: planned)
    monkeypatch.setattr(worker._flows, "known_heartbeats", lambda: lambda _topic: False)
    monkeypatch.setattr(worker._unread, "make_up", lambda *_, **__: made_up.append(1))
    made_up.clear()
    monkeypatch.setattr(landing_worker, "begin_query", lambda *_: Path("a checkpoint"))
    monkeypatch.setattr(landing_worker, "forget_query", lambda *_: None)
    return worker


@pytest.mark.parametrize("missed", [MISSED, None])
def test_what_the_last_batch_before_a_stop_has_not_read_is_reported(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch, missed: MirrorlakeError | None
) -> None:
    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: Query(missed, False))
    worker.thread.stop()
    if missed is None:
        assert worker._land()
        assert len(made_up) == 1, "of queries before"
        return
    with pytest.raises(ReplicationError, match="read 0 of 3 offsets"):
        worker._land()
    assert len(made_up) == 2, "of its own, too, while the process lives"
    monkeypatch.setattr(Query, "fenced", lambda _: True)
    with pytest.raises(Fenced):  # Delta skips the batches of such a one
        worker._land()
    assert len(made_up) == 3, "not what another process reads now"


@pytest.mark.parametrize("once", [False, True])
def test_a_run_with_an_end_does_not_end_well_that_has_told_of_a_gap(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    """A flow may have gone on behind it, whoever left it. Of a run without an end an operator may
    have taken note long before its end."""
    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: Query(None, False))
    worker._once = once
    monkeypatch.setattr(worker._unread, "reported", MISSED)
    worker.thread.stop()
    assert worker._land() and worker.error == (MISSED if once else None)


def test_one_that_was_fenced_tells_no_other_process_what_it_covered(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta skips the batches of such a one, and Spark reports them as done."""
    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: Query(None, False))
    monkeypatch.setattr(Query, "fenced", lambda _: True)
    noted: list[bool] = []
    monkeypatch.setattr(worker, "_note_covered", noted.append)
    monkeypatch.setattr(type(worker._lease), "held", True, raising=False)
    worker.thread.stop()
    with pytest.raises(Fenced):
        worker._land()
    assert not noted


def test_what_a_batch_has_not_read_is_reported_where_a_topic_is_gone_as_well(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That what it reads is gone says why a query of Kafka's records fails, and not why Spark ran
    no task."""
    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: Query(MISSED, True))
    gone: Any = SimpleNamespace(
        plan=lambda *_: SimpleNamespace(explains=lambda *_: True), succeeded=lambda _keys: None
    )
    monkeypatch.setattr(worker, "_planner", gone)
    monkeypatch.setattr(worker._incidents, "succeeded", lambda *_: None)
    with pytest.raises(ReplicationError, match="read 0 of 3 offsets"):
        worker._land()
    assert len(made_up) == 2, "what it staged is compared by the same process"


@pytest.mark.parametrize("ended", [False, True])
def test_a_query_that_others_stop_has_not_come_to_its_end(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    """Such as by the end of its session: Spark knows no exception of it, and a run that took it for
    the end would exit with 0."""
    query = Query(None, True)
    query.ended = ended
    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: query)
    planner: Any = SimpleNamespace(succeeded=lambda _keys: None)
    monkeypatch.setattr(worker, "_planner", planner)
    monkeypatch.setattr(worker._incidents, "succeeded", lambda *_: None)
    assert worker._land() is ended


def test_a_query_that_cannot_be_stopped_is_asked_for_nothing_any_more(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the server of its session is away: flows, which ask how far landing is, go on, and
    what it had covered by an older plan is not taken for what the next one has."""

    def away(_query: Query) -> None:
        raise OSError("the session is away")

    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: Query(None, False))
    monkeypatch.setattr(Query, "stop", away)
    monkeypatch.setattr(Query, "covered", away)
    worker.thread.stop()
    with pytest.raises(OSError, match="away"):
        worker._land()
    assert not worker.lands and worker.covered() == {}


class Kept:
    """A lease for which processes stand by; another one has it once it was asked `asked` times."""

    stands_by = True

    def __init__(self, asked: int) -> None:
        self._left = asked

    @property
    def held(self) -> bool:
        self._left -= 1
        return self._left >= 0

    def take(self, sure: bool = False) -> None:
        if self._left < 0:
            raise LeaseTaken("another process lands")

    def release(self) -> None:
        pass


@pytest.mark.parametrize("fenced", [False, True])
def test_who_lost_the_lease_stands_by_and_knows_nothing_of_what_it_saw(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch, fenced: bool
) -> None:
    """Whether Kafka says so, or, sooner, that nothing of its query is committed any more."""
    told: list[object] = []
    monkeypatch.setattr(worker._incidents, "failed", lambda *found: told.append(found))
    query = Query(None, False)
    query.active = not fenced
    monkeypatch.setattr(Query, "fenced", lambda _: fenced)
    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: query)
    worker._lease = Kept(asked=2)
    worker._covered, before = {("t", 0): 5}, worker._planner
    planner: Any = SimpleNamespace(succeeded=lambda _keys: None)
    worker._planner = planner
    monkeypatch.setattr(worker._incidents, "succeeded", lambda *_: None)
    assert worker._turn() == landing_worker.STANDBY_SECONDS
    assert told == [] and worker.covered() == {}
    assert worker._planner not in (planner, before)
    worker.thread.stopping.set()
    assert worker._turn() is None, "and ends when it is told to"


class Taken:
    """A lease that no process stands by for: another one has it the first times."""

    stands_by, held = False, True

    def __init__(self, worker: LandingWorker, times: int) -> None:
        self._worker, self._left = worker, times
        self.generations: list[object] = []

    def take(self, sure: bool = False) -> None:
        self.generations.append(self._worker.generations())
        self._left -= 1
        if self._left >= 0:
            raise LeaseTaken("another process lands")

    def release(self) -> None:
        pass


def test_who_waits_for_another_process_that_lands_goes_by_what_that_one_begins(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its flows were sampled in the generations that there were when it began: of a topic that was
    made again since they had nothing, and lagged for ever."""
    monkeypatch.setattr(landing_worker, "COMPARE_SECONDS", 0.0)
    pace = SimpleNamespace(leases=0.0, owners=0.0)
    monkeypatch.setattr(type(worker._flows), "pace", property(lambda _: pace))
    newest = iter(range(10))
    monkeypatch.setattr(landing_worker, "generations_of", lambda *_: next(newest))
    monkeypatch.setattr(worker, "_land", lambda: True)
    worker._covered, before = {("t", 0): 5}, worker._planner
    lease = worker._lease = Taken(worker, times=3)
    assert worker._land_with_lease()
    assert lease.generations == [0, 1, 2, 3]
    assert worker.covered() == {} and worker._planner is not before
    assert worker.generations() == worker.generations(), "what it lands itself it knows"


def test_what_fails_while_it_has_the_lease_is_reported(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: Query(MISSED, True))
    unexplained = SimpleNamespace(explains=lambda *_: False)
    planner: Any = SimpleNamespace(succeeded=bool, plan=lambda *_: unexplained)
    worker._planner = planner
    monkeypatch.setattr(worker._incidents, "succeeded", lambda *_: None)
    worker._lease = Kept(asked=100)
    with pytest.raises(ReplicationError, match="read 0 of 3 offsets"):
        worker._turn()


def ends_at_once(monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> None:
    """Each query from now on ends before it came through a batch."""
    monkeypatch.setattr(landing_worker, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(Query, "active", False)
    monkeypatch.setattr(Query, "began", False)
    monkeypatch.setattr(Query, "exception", lambda _: error)
    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: Query(None, False))


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("error", [None, OSError("the leader is gone")])
def test_what_begins_anew_again_and_again_is_a_failure(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch, once: bool, error: Exception | None
) -> None:
    """As where the leader of a partition comes and goes: a run with an end went on so for ever, one
    without did so without a pause, and no operator heard of it."""
    ends_at_once(monkeypatch, error)
    found = SimpleNamespace(explains=lambda *_: True, losses=())
    planner: Any = SimpleNamespace(succeeded=bool, plan=lambda *_: found)
    worker._planner, worker._once = planner, once
    assert [worker._turn() for _ in range(BEGUN_ANEW)] == [0.0] * 10
    for _ in range(2):  # after a pause, too
        with pytest.raises(ReplicationError, match="begun anew 10 times") as raised:
            worker._turn()
    assert worker._ends(raised.value, raised.value, 0) is once, "a run with an end exits with 1"


def test_each_loss_leaves_less_to_begin_with(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a source of which much is lost, one topic after the other, is landed around all of it."""
    ends_at_once(monkeypatch, OSError("the topic is gone"))
    found = SimpleNamespace(explains=lambda *_: True, losses=("one",))
    planner: Any = SimpleNamespace(succeeded=bool, plan=lambda *_: found)
    worker._planner, worker._once = planner, True
    assert [worker._turn() for _ in range(30)] == [0.0] * 30


def test_what_came_through_in_between_is_no_failure(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends_at_once(monkeypatch, None)
    monkeypatch.setattr(Query, "began", True)
    monkeypatch.setattr(worker._incidents, "succeeded", lambda *_: None)
    planner: Any = SimpleNamespace(succeeded=bool)
    worker._planner = planner
    assert [worker._turn() for _ in range(30)] == [0.0] * 30


def test_what_was_covered_is_planned_by_with_the_generations_that_it_is_of(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time, as where a partition without a leader has it planned again: what is of an older
    generation would else count for the newer one from the second time on."""
    asked: list[tuple[dict[object, int], CurrentGenerations]] = []
    older, newer = (CurrentGenerations({"t": TopicGeneration(at, "id")}) for at in (0, 1))

    def plan(covered: dict[object, int], covered_in: CurrentGenerations) -> Any:
        asked.append((dict(covered), covered_in))
        return SimpleNamespace(
            leaderless=len(asked) == 1,
            covered={},
            current_generations=newer,
            plan=SimpleNamespace(starts={}),
            topics={},
            passed_over=(),
            losses=(),
        )

    planner: Any = SimpleNamespace(plan=plan)
    worker._planner, worker._covered, worker._covered_in = planner, {("t", 0): 5}, older
    monkeypatch.setattr(landing_worker, "LEADERLESS_SECONDS", 0.0)
    monkeypatch.setattr(landing_worker, "note_fresh_topics", lambda *_: None)
    monkeypatch.setattr(worker._incidents, "report_plan", lambda *_: None)
    for _ in range(2):
        LandingWorker._plan(worker, Path("a checkpoint"))
    assert asked == [({("t", 0): 5}, older)] * 2 + [({}, newer)]
    assert worker.covered() == {} and worker.generations() is newer


def test_a_query_that_is_outgrown_makes_way_for_sparks(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and that is neither a failure nor an end."""
    outgrown = Query(None, ended=True)
    outgrown.outgrown = True
    monkeypatch.setattr(landing_worker, "start_landing", lambda *_, **__: outgrown)
    for name in ("_incidents", "_planner"):
        monkeypatch.setattr(worker, name, SimpleNamespace(succeeded=lambda *_: None))
    assert not worker._land() and worker.error is None


class Overtaken:
    """A planner of a process that stands still while it plans."""

    def __init__(self, lake: PathLake) -> None:
        self._lake = lake

    def plan(self, *_: object) -> Any:
        end_queries(self._lake, "east")  # as another process does that begins
        return SimpleNamespace(leaderless=False, losses=("a loss",))


def marks_queries(worker: LandingWorker, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have a worker make marks in its lake, as it does."""
    worker._lake.tables.create("records")  # type: ignore[attr-defined]
    monkeypatch.setattr(landing_worker, "begin_query", begin_query)
    monkeypatch.setattr(landing_worker, "forget_query", forget_query)
    return worker._lake


def test_what_an_overtaken_process_takes_for_lost_is_not_reported(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has compared what the source had with what another process has staged since, and a
    partition that waits for a decision is landed by none."""
    planner: Any = Overtaken(marks_queries(worker, monkeypatch))
    monkeypatch.setattr(worker, "_plan", lambda at: LandingWorker._plan(worker, at))
    worker._planner = planner
    with pytest.raises(Fenced, match="another process has taken over landing of cluster east"):
        worker._land()


def test_where_nothing_is_begun_nothing_is_left_to_be_fenced(
    worker: LandingWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that is away is planned for often; each mark that is left is a commit."""
    lake, seen = marks_queries(worker, monkeypatch), list[bool]()
    marks = lake.leases / "landing" / "east"

    def plan(at: Path) -> Any:
        seen.append(at.name in marks.names())
        raise ClusterUnreachable("it does not answer", alias="east")

    monkeypatch.setattr(worker, "_plan", plan)
    version = lake.version_of("records")
    for _ in range(2):
        with pytest.raises(ClusterUnreachable):
            worker._land()
    assert seen == [True, True], "it is there before it is planned"
    assert not marks.names() and lake.version_of("records") == version
