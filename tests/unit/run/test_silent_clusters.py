"""What no rule could look at when a run began, since a cluster was away, is judged once it
answers."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.checks.preflight import Preflight
from mirrorlake.checks.problem import Problem, refused_flows
from mirrorlake.checks.rules import check_flows
from mirrorlake.errors import ClusterUnreachable, ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.run import first_start, landings_here, silent_clusters
from mirrorlake.run.first_start import note_starts_known
from mirrorlake.run.flow_worker import TRANSIENT_KINDS
from mirrorlake.run.options import RunOptions
from mirrorlake.run.replicator import Replicator
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import FLOW, no_session, opened, write_file
from tests.support.waiting import until

OTHER = "north->west"


@pytest.fixture
def east() -> MemoryCluster:
    """One that is away."""
    made = MemoryCluster("east")
    made.refusal = ClusterUnreachable("cluster east does not answer", alias="east")
    return made


@pytest.fixture
def run(tmp_path: Path, east: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> Replicator:
    """Of a flow from there, and one from elsewhere; what is to run is kept in `applied`."""
    clusters: Any = {"east": east, **{name: MemoryCluster(name) for name in ("west", "north")}}

    def judged(_lake: object, connections: Connections, flows: Any) -> Preflight:
        ids = {name: cluster.cluster_id() for name, cluster in clusters.items()}
        problems = check_flows(flows, ids, {})
        going = (flow for flow in flows if flow.name not in refused_flows(problems))
        return Preflight(connections, tuple(going), ids, problems=tuple(problems))

    monkeypatch.setattr(silent_clusters, "ASK_SECONDS", 0.01)
    monkeypatch.setattr(silent_clusters, "judged", judged)
    lake, topology = opened(no_session, write_file(tmp_path, flows={FLOW: {}, OTHER: {}}))
    deployment = Deployment(lake, Connections(topology, clusters), EventLog(lake))
    made = Replicator(deployment, topology.active_flows(), RunOptions())
    made.applied = []  # type: ignore[attr-defined]

    def apply(preflight: Preflight) -> None:
        made.applied.append([flow.name for flow in preflight.flows])  # type: ignore[attr-defined]
        made._silent.ask_for(preflight.connections, preflight.silent)

    made._apply = apply  # type: ignore[method-assign]
    made._silent.ask_for(made._connections, ["east"])
    return made


def answers_as_west(east: MemoryCluster) -> None:
    """It is the other cluster, by another address."""
    east.cluster_id = lambda: "id-of-west"  # type: ignore[method-assign]
    east.refusal = None


def is_judged(run: Replicator) -> None:
    """Once the cluster has answered who asks for it."""
    thread = run._silent._asking
    assert thread is not None
    until(thread.ended.is_set, "it answers")
    run._judge_again()


def test_a_flow_that_must_not_run_ends_once_that_is_known(
    run: Replicator, east: MemoryCluster
) -> None:
    """It would have mirrored a cluster onto itself, if it had only been away when the run began.
    The one that was judged before goes on: it must not run beside that one, and does not."""
    applied: list[object] = run.applied  # type: ignore[attr-defined]
    run._judge_again()
    assert applied == [], "it is away still"
    answers_as_west(east)
    is_judged(run)
    assert applied == [[OTHER]]
    incidents = run.event_log.incidents
    assert (incidents.open_kinds(FLOW), incidents.open_kinds(OTHER)) == ({"flow_stopped"}, set())
    assert [error.exit_code for error in run._errors] == [1]
    run._judge_again()
    assert applied == [[OTHER]], "once"


@pytest.mark.parametrize("flow", [FLOW, OTHER])
def test_what_a_cluster_does_not_tell_ends_no_flow(
    run: Replicator, east: MemoryCluster, monkeypatch: pytest.MonkeyPatch, flow: str
) -> None:
    """It is judged again: what keeps it from telling is over some time. Nor does it end one that
    ran all the while."""
    judged, told = silent_clusters.judged, list[bool]()

    def not_told(lake: Any, connections: Connections, flows: Any) -> Preflight:
        preflight = judged(lake, connections, flows)
        if told:
            return preflight
        told.append(True)
        unknown = Problem("other-lake", "refuse", (flow,), "west", "it is not known", "wait")
        return replace(preflight, problems=(unknown,))

    monkeypatch.setattr(silent_clusters, "judged", not_told)
    east.refusal = None
    with pytest.raises(ClusterUnreachable, match="it is not known; wait"):
        is_judged(run)
    assert run.event_log.incidents.open_kinds(flow) == set() and run._errors == []
    is_judged(run)
    assert run.applied == [[FLOW, OTHER]]  # type: ignore[attr-defined]


class LastBatch:
    """A flow that is in the middle of a batch: it closes what was open for it as that comes
    through, before it ends."""

    def __init__(self, run: Replicator) -> None:
        self._run, self._ended = run, False

    def stop(self) -> None:
        """It ends behind the batch."""

    def join(self) -> None:
        if not self._ended:
            self._run.event_log.incidents.close_kinds([FLOW], TRANSIENT_KINDS)
        self._ended = True


def test_a_batch_that_is_on_its_way_does_not_close_what_its_flow_is_refused_for(
    run: Replicator, east: MemoryCluster
) -> None:
    """The flow had ended, and the lake said that it was well."""
    apply, last = run._apply, LastBatch(run)
    run._here.running[FLOW] = last  # type: ignore[assignment]

    def applied(preflight: Preflight) -> None:
        last.join()
        apply(preflight)

    run._apply = applied  # type: ignore[method-assign]
    answers_as_west(east)
    is_judged(run)
    assert run.event_log.incidents.open_kinds(FLOW) == {"flow_stopped"}


def test_operators_hear_of_it_where_the_lake_takes_no_news_at_first(
    run: Replicator, east: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flow had ended by then, and no judgement behind that knew of it."""
    answers_as_west(east)
    incidents = run.event_log.incidents

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as lake, pytest.raises(OSError, match="no space"):
        lake.setattr(incidents, "open", full)
        is_judged(run)
    is_judged(run)
    assert run.applied == [[OTHER]]  # type: ignore[attr-defined]
    assert incidents.open_kinds(FLOW) == {"flow_stopped"}
    assert len(run._errors) == 1


def test_what_could_not_be_applied_is_judged_once_more(
    run: Replicator, east: MemoryCluster
) -> None:
    """As where a landing could not be started: a flow that waited for its cluster never began."""
    east.refusal = None
    apply, calls = run._apply, [0]

    def applied(preflight: Preflight) -> None:
        apply(preflight)
        calls[0] += 1
        if calls[0] == 1:
            raise RuntimeError("can't start new thread")

    run._apply = applied  # type: ignore[method-assign]
    for _ in range(2):
        thread = run._silent._asking
        assert thread is not None
        until(thread.ended.is_set, "it answers")
        if calls[0]:
            run._judge_again()
        else:
            with pytest.raises(RuntimeError):
                run._judge_again()
    assert calls == [2]
    run._judge_again()
    assert calls == [2], "once"


def test_a_run_with_an_end_does_not_wait_for_it(run: Replicator) -> None:
    run._silent._waits = False
    run._silent.ask_for(run._connections, ["east"])
    assert run._silent._asking is None and run._silent.aliases == {"east"}


def at_its_end(run: Replicator) -> None:
    """A run with an end that comes to it."""
    run._options = RunOptions(once=True)
    run._begin = run._end = lambda: None  # type: ignore[method-assign]
    run._all_ended = lambda: True  # type: ignore[method-assign]
    run.run()


def test_what_a_run_with_an_end_did_is_judged_at_its_end(
    run: Replicator, east: MemoryCluster
) -> None:
    """The cluster answered again in time to be landed: no rule looked at it, and the exit code was
    0."""
    answers_as_west(east)
    with pytest.raises(ReplicationError, match="onto itself"):
        at_its_end(run)
    assert run.event_log.incidents.open_kinds(FLOW) == {"flow_stopped"}


@pytest.mark.parametrize("paused", [False, True])
def test_what_cannot_be_judged_at_its_end_is_not_in_order(
    run: Replicator, east: MemoryCluster, monkeypatch: pytest.MonkeyPatch, paused: bool
) -> None:
    """But for a flow that does nothing."""
    (flow,) = (flow for flow in run._flows if flow.name == FLOW)
    settings = flow.settings.model_copy(update={"paused": paused})
    monkeypatch.setattr(run, "_flows", [replace(flow, settings=settings)])
    monkeypatch.setattr(
        silent_clusters,
        "judged",
        lambda _lake, connections, flows: Preflight(
            connections, tuple(flows), {}, silent={"east": "cluster east does not answer"}
        ),
    )
    if paused:
        at_its_end(run)
        return
    with pytest.raises(ClusterUnreachable, match="east does not answer"):
        at_its_end(run)


def test_one_whose_clusters_were_all_judged_ends_in_order(
    run: Replicator, east: MemoryCluster
) -> None:
    east.refusal = None
    at_its_end(run)


class Landing:
    """What is landed, by source: for which flows."""

    read: dict[str, list[str]] = {}

    def __init__(self, source: str, *_: object) -> None:
        self.source, self.thread = source, SimpleNamespace(start=bool, stop=bool, join=bool)

    def set_flows(self, flows: Any, *_: object) -> None:
        self.read[self.source] = [flow.name for flow in flows]


@pytest.mark.parametrize("once", [False, True])
def test_only_the_flow_waits_of_which_it_is_not_known_where_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    """A leader that does not answer: no flow of the whole file began, and the run ended."""
    unknown = {"east->west"}

    def note(_deployment: Deployment, flow: Any) -> None:
        if flow.name in unknown:
            raise ReplicationError(f"flow {flow.name} cannot begin at latest")

    monkeypatch.setattr(first_start, "note_first_start", note)
    monkeypatch.setattr(landings_here, "LandingWorker", Landing)
    flows = {"east->west": {}, "west->east": {}, "east->north": {}}
    lake, topology = opened(no_session, write_file(tmp_path, flows=flows))
    deployment = Deployment(lake, Connections(topology), EventLog(lake))
    made = Replicator(deployment, topology.active_flows(), RunOptions(once=once))
    wanted = topology.active_flows()
    if once:
        with pytest.raises(ReplicationError, match="cannot begin"):
            note_starts_known(deployment, wanted, once)
        return
    assert note_starts_known(deployment, wanted, once) == ["east->west"]
    made._unbegun = {"east->west": "east"}
    assert made.event_log.incidents.open_kinds("east->west") == {"flow_waits"}
    preflight = Preflight(deployment.connections, tuple(wanted), ids={})
    made._apply_landings(preflight)
    assert Landing.read == {"west": ["west->east"], "east": ["east->north"]}
    unknown |= {flow.name for flow in wanted}
    with pytest.raises(ReplicationError):  # there is nothing that goes on
        note_starts_known(deployment, wanted, once)
