"""A process runs the flows that it has the lease of, and no others, as leases come and go. No
Kafka."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import Fenced, LeaseTaken, ReplicationError
from mirrorlake.run import flows_here
from mirrorlake.run.flow_worker import FlowWorker
from mirrorlake.run.flows_here import FlowsHere

A, B = "east->west", "west->east"


class Thread:
    """A worker that ends when it is told to, or, `slow`, when a test says so."""

    def __init__(self, slow: bool = False) -> None:
        self.error: Exception | None = None
        self.ended = SimpleNamespace(is_set=lambda: self.is_over)
        self.is_over, self.asked, self._slow = False, False, slow

    def start(self) -> None:
        assert not self.is_over

    def stop(self) -> None:
        self.asked = True
        self.is_over = self.is_over or not self._slow

    def join(self, _seconds: float | None = None) -> bool:
        return self.is_over


class Lease:
    stands_by = True

    def __init__(self) -> None:
        self.held = False


class Lock(Lease):
    """One that the lake keeps, as whose holder a process counts once it took it."""

    stands_by = False

    def __init__(self) -> None:
        self.held = True


class Leases:
    def __init__(self) -> None:
        self.by_flow = {A: Lease(), B: Lease()}
        self.left: list[str] = []
        self.deserted = {A, B}

    def of_flow(self, flow: Any) -> Lease:
        return self.by_flow[flow.name]

    def give_up(self, what: str) -> None:
        self.left.append(what)

    def is_deserted(self, flow: str) -> bool:
        return flow in self.deserted


@pytest.fixture
def leases() -> Leases:
    return Leases()


@pytest.fixture
def here(leases: Leases, monkeypatch: pytest.MonkeyPatch) -> FlowsHere:
    def worker(flow: Any, *_: Any, **__: Any) -> Any:
        made = SimpleNamespace(flow=flow, thread=Thread(slow=flow.name == B))
        made.error, made.tenures = None, 0
        return made

    def control(*_: Any) -> Any:
        return SimpleNamespace(thread=Thread(), finish=lambda: None, run_once=lambda: None)

    monkeypatch.setattr(flows_here, "FlowWorker", worker)
    monkeypatch.setattr(flows_here, "ControlLoop", control)
    landings: Any = {"east": None, "west": None}
    made = FlowsHere(
        SimpleNamespace(),  # type: ignore[arg-type]
        leases,  # type: ignore[arg-type]
        landings,
        once=False,
        reader="auto",
        report=lambda *_: None,
        sampled=None,
    )
    made.want(wanted(), preflight())
    return made


def wanted() -> dict[str, Any]:
    ends = {A: ("east", "west"), B: ("west", "east")}
    return {
        name: SimpleNamespace(name=name, source=source, target=target)
        for name, (source, target) in ends.items()
    }


def preflight(**left_out: Any) -> Any:
    topology = SimpleNamespace(clusters={"east": 1, "west": 2}, aliases=frozenset())
    return SimpleNamespace(connections=SimpleNamespace(topology=topology), left_out=left_out)


def follow(here: FlowsHere, forgotten: list[str] | None = None, incidents: Any = None) -> list[str]:
    """`forgotten` gets the clusters of which the process forgets what it knew."""
    states = SimpleNamespace(forget=([] if forgotten is None else forgotten).append)
    deployment: Any = SimpleNamespace(event_log=SimpleNamespace(states=states, incidents=incidents))
    return here.follow(deployment)


def test_what_another_process_has_is_stood_by_for(here: FlowsHere, leases: Leases) -> None:
    assert follow(here) == []
    assert here.running == {} and here.wanted == [A, B]
    assert not here.all_ended, "a process that stands by is there for a reason"
    leases.by_flow[A].held = True
    forgotten: list[str] = []
    assert follow(here, forgotten) == [A]
    assert forgotten == ["east"], "another process may have noted how its topics are"
    assert follow(here) == [], "once"
    assert [*here.running] == [A]


def test_what_another_process_took_ends_and_begins_anew_when_it_comes_back(
    here: FlowsHere, leases: Leases
) -> None:
    leases.by_flow[A].held = True
    follow(here)
    first = here.running[A]
    leases.by_flow[A].held = False
    assert follow(here) == [] and here.running == {}
    assert first.worker.thread.is_over and first.control.thread.is_over
    leases.by_flow[A].held = True
    assert follow(here) == [A]
    assert here.running[A].worker is not first.worker, "nothing of before is known any more"


def test_it_begins_anew_only_once_what_was_before_has_ended(
    here: FlowsHere, leases: Leases
) -> None:
    leases.by_flow[B].held = True
    follow(here)
    slow: Any = here.running[B].worker.thread
    leases.by_flow[B].held = False
    follow(here)
    leases.by_flow[B].held = True
    assert follow(here) == []
    slow.is_over = True
    assert follow(here) == [B]


def test_who_was_fenced_begins_anew_while_it_has_the_lease(here: FlowsHere, leases: Leases) -> None:
    leases.by_flow[A].held = True
    follow(here)
    thread: Any = here.running[A].worker.thread
    thread.error, thread.is_over = Fenced("another process was there"), True
    assert follow(here) == [A]


def test_what_an_operator_has_to_see_ends_it_for_good(here: FlowsHere, leases: Leases) -> None:
    leases.by_flow[A].held = leases.by_flow[B].held = True
    follow(here)
    for running in here.running.values():
        thread: Any = running.worker.thread
        thread.error, thread.is_over = ReplicationError("the map contradicts"), True
    assert follow(here) == []
    assert here.all_ended


def test_a_flow_that_is_not_wanted_any_more_leaves_its_group(
    here: FlowsHere, leases: Leases
) -> None:
    leases.by_flow[A].held = True
    follow(here)
    left: Any = {B: wanted()[B]}
    here.keep(left, preflight())
    assert here.wanted == [B] and here.running == {}
    assert leases.left == [f"flow {A}"]


def test_where_another_process_goes_on_it_takes_the_samples(
    here: FlowsHere, leases: Leases
) -> None:
    sampled: list[str] = []
    for name in (A, B):
        leases.by_flow[name].held = True
    follow(here)
    for name in (A, B):
        here.running[name].control.finish = partial(sampled.append, name)  # type: ignore[method-assign]
    leases.deserted = {B}
    assert here.producing.keys() == {f"flow {A}", f"flow {B}"}
    here.stop()
    here.end()
    assert sampled == [B]


class Opened:
    """Incidents; the lake does not take the first one."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self._fails = True

    def open(self, flow: str, kind: str, _problem: Exception) -> None:
        if self._fails:
            self._fails = False
            raise OSError("no space left")
        self.told.append((flow, kind))


def test_a_flow_that_cannot_begin_waits_longer_each_time_and_holds_up_no_other(
    here: FlowsHere,
    leases: Leases,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It was tried ten times a second, each time with a line in the log that no operator reads;
    and those behind it never began."""
    now, made, incidents = [1_000.0], flows_here.FlowWorker, Opened()
    monkeypatch.setattr(flows_here, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def worker(flow: Any, *left: Any, **more: Any) -> Any:
        if flow.name == A:
            raise OSError("damaged")
        return made(flow, *left, **more)

    monkeypatch.setattr(flows_here, "FlowWorker", worker)
    for lease in leases.by_flow.values():
        lease.held = True
    assert follow(here, incidents=incidents) == [B], "the one behind it"
    for _ in range(1_200):  # two minutes
        assert follow(here, incidents=incidents) == []
        now[0] += 0.1
    assert 7 <= len(caplog.messages) <= 10
    assert incidents.told and set(incidents.told) == {(A, "flow_waits")}
    monkeypatch.setattr(flows_here, "FlowWorker", made)
    now[0] += 30.0
    assert follow(here) == [A], "whose worker closes the incident when it comes through"


def test_who_is_fenced_again_and_again_does_not_begin_at_once(
    here: FlowsHere, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, incidents = [1_000.0], Opened()
    monkeypatch.setattr(flows_here, "time", SimpleNamespace(monotonic=lambda: now[0]))
    leases.by_flow[A].held = True
    begun = 0
    for _ in range(600):  # a minute
        begun += len(follow(here, incidents=incidents))
        if A in here.running:
            thread: Any = here.running[A].worker.thread
            thread.error, thread.is_over = Fenced("another process was there"), True
        now[0] += 0.1
    assert 5 <= begun <= 8
    assert set(incidents.told) == {(A, "flow_waits")}


def end(here: FlowsHere, error: Exception, had_lease: bool) -> None:
    """A flow's thread ends."""
    worker: Any = here.running[A].worker
    worker.tenures = int(had_lease)
    worker.thread.error, worker.thread.is_over = error, True


def test_a_flow_goes_on_once_a_command_that_had_its_lease_meanwhile_has_ended(
    here: FlowsHere, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its target was away `forget` had taken its lease, between two attempts: it was over
    for good, and waited for no operator, though other flows of the process went on."""
    now, incidents = [1_000.0], Opened()
    monkeypatch.setattr(flows_here, "time", SimpleNamespace(monotonic=lambda: now[0]))
    leases.by_flow = {A: Lock(), B: Lock()}  # type: ignore[dict-item]
    here.want(wanted(), preflight())
    assert follow(here) == [A, B]
    end(here, LeaseTaken("process 7 has it"), had_lease=True)
    thread: Any = here.running[B].worker.thread
    thread.is_over = True  # its landing has ended
    assert not here.all_ended
    begun = 0
    for _ in range(600):  # a minute
        begun += len(follow(here, incidents=incidents))
        assert not here.all_ended
        if A in here.running:
            end(here, LeaseTaken("process 7 has it"), had_lease=False)
        now[0] += 0.1
    assert 5 <= begun <= 8
    assert incidents.told == [], "the flow is healthy"
    now[0] += 30.0
    assert follow(here) == [A]


def test_a_worker_knows_whether_it_ever_had_the_lease() -> None:
    def taken() -> None:
        raise LeaseTaken("process 7 has it")

    lease = SimpleNamespace(take=taken, release=lambda: None)
    flow: Any = SimpleNamespace(
        _lease=lease, tenures=0, _refresh=lambda: None, _produce=lambda: True
    )
    with pytest.raises(LeaseTaken):
        FlowWorker._with_lease(flow)
    assert not flow.tenures
    lease.take = lambda: None
    assert FlowWorker._with_lease(flow) and flow.tenures == 1


def test_a_second_process_of_a_flow_does_not_wait_for_it(here: FlowsHere, leases: Leases) -> None:
    leases.by_flow = {A: Lock(), B: Lock()}  # type: ignore[dict-item]
    here.want({A: wanted()[A]}, preflight())
    here.keep({A: wanted()[A]}, preflight())
    assert follow(here) == [A]
    end(here, LeaseTaken("process 7 has it"), had_lease=False)
    assert follow(here) == [] and here.all_ended


@pytest.mark.parametrize("error", [LeaseTaken("process 7 has it"), Fenced("process 7 took over")])
def test_a_flow_that_another_process_runs_is_not_deserted(
    here: FlowsHere, leases: Leases, error: Exception
) -> None:
    leases.by_flow[A].held = True
    follow(here)
    assert here.is_deserted(A)
    end(here, error, had_lease=True)
    assert not here.is_deserted(A)


def test_a_flow_whose_thread_does_not_start_is_tried_again(
    here: FlowsHere, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a host has no thread more it counted as running, for ever, and kept its lease."""
    now, made = [1_000.0], flows_here.ControlLoop
    monkeypatch.setattr(flows_here, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class NoThread(Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(flows_here, "ControlLoop", lambda *_: SimpleNamespace(thread=NoThread()))
    leases.by_flow[A].held = True
    assert follow(here) == [] and here.running == {}
    assert here._given_up[0][1].worker.thread.asked, "no flow goes on without its control"
    monkeypatch.setattr(flows_here, "ControlLoop", made)
    now[0] += 60.0
    assert follow(here) == [A]
