"""A process that ends leaves what another one may go on with as soon as it does not do it any
more."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import MirrorlakeError, ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.identity import store_identity
from mirrorlake.lake.lease import Lease
from mirrorlake.run import leases as leases_module
from mirrorlake.run.leases import Leases, _Refusals
from mirrorlake.worker import Worker
from tests.support.lake_rows import no_session, opened, write_file

FLOW, LANDING = "flow east->west", "landing of cluster east"
REFUSED = ReplicationError("no READ")


def test_a_group_is_left_while_other_work_is_still_being_ended() -> None:
    slow_may_end, flow_left = threading.Event(), threading.Event()
    left: list[str] = []

    def kept(what: str, leaves: threading.Event) -> Any:
        def leave() -> None:
            left.append(what)
            leaves.set()

        return SimpleNamespace(leave=leave, error=REFUSED if what == FLOW else None)

    connections = SimpleNamespace(topology=SimpleNamespace(availability="kafka"))
    deployment: Any = SimpleNamespace(lake=None, connections=connections, event_log=None)
    leases = Leases(deployment)
    leases._kept.update({LANDING: kept(LANDING, threading.Event()), FLOW: kept(FLOW, flow_left)})

    def lands() -> None:
        assert slow_may_end.wait(10)

    threads = {LANDING: Worker("landing", lands), FLOW: Worker("flow", lambda: None)}
    for thread in threads.values():
        thread.start()
    ending = threading.Thread(target=leases.leave_when_ended, args=(threads,))
    ending.start()
    assert flow_left.wait(10), "it waits for what takes longer"
    assert left == [FLOW]
    slow_may_end.set()
    ending.join(10)
    assert left == [FLOW, LANDING] and not leases._kept
    assert leases.errors == [REFUSED], "what it could not be a member of is told at the end"


class Told:
    """Incidents that are open, by flow."""

    def __init__(self) -> None:
        self.opened: dict[str, str] = {}

    def open(self, flow: str, kind: str, problem: MirrorlakeError) -> None:
        self.opened[flow] = f"{kind}: {problem}"

    def close_kinds(self, flows: list[str], kinds: list[str]) -> None:
        assert kinds == ["not_a_member"]
        for flow in flows:
            self.opened.pop(flow, None)


def test_a_flow_has_an_incident_until_each_of_its_groups_has_this_process() -> None:
    told: Any = Told()
    refusals = _Refusals(SimpleNamespace(incidents=told))  # type: ignore[arg-type]
    both, one = ["east->west", "east->north"], ["east->west"]
    refusals.note(LANDING, both, ReplicationError("no READ"))
    refusals.note(FLOW, one, None)
    assert told.opened == dict.fromkeys(both, "not_a_member: no READ"), "landing is still refused"
    refusals.note(FLOW, one, ReplicationError("no READ on the other one"))
    refusals.note(LANDING, both, None)
    assert told.opened == {"east->west": "not_a_member: no READ on the other one"}
    refusals.note(FLOW, one, None)
    assert told.opened == {}


def test_what_this_process_is_to_do_no_more_holds_no_incident_open() -> None:
    told: Any = Told()
    refusals = _Refusals(SimpleNamespace(incidents=told))  # type: ignore[arg-type]
    refusals.note(LANDING, ["east->west"], ReplicationError("no READ"))
    refusals.forget(LANDING)
    refusals.note(FLOW, ["east->west"], None)
    assert told.opened == {}


def test_all_are_settled_once_each_has_been_heard_of() -> None:
    connections = SimpleNamespace(topology=SimpleNamespace(availability="kafka"))
    deployment: Any = SimpleNamespace(lake=None, connections=connections, event_log=None)
    leases = Leases(deployment)
    assert leases.are_settled, "there is none"
    flow, landing = SimpleNamespace(is_settled=True), SimpleNamespace(is_settled=False)
    leases._kept.update({FLOW: flow, LANDING: landing})  # type: ignore[dict-item]
    assert not leases.are_settled
    landing.is_settled = True
    assert leases.are_settled


def test_a_flow_that_another_process_has_the_lease_of_is_not_deserted(tmp_path: Path) -> None:
    """The end of a second process was noted as that of the flow, which had no alert from then on,
    though the first one ran it."""
    lake, topology = opened(no_session, write_file(tmp_path))
    leases = Leases(Deployment(lake, Connections(topology), EventLog(lake)))
    assert leases.is_deserted("east->west")
    other = Lease(lake, FLOW)
    other.take()
    assert not leases.is_deserted("east->west")
    other.release()
    assert leases.is_deserted("east->west")


def test_a_member_whose_thread_does_not_start_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else this process would never hear of the group, and no other would know."""
    joined: list[str] = []

    def join() -> None:
        if not joined:
            joined.append("in vain")
            raise RuntimeError("can't start new thread")
        joined.append("joined")

    made = SimpleNamespace(join=join, leave=bool, error=None)
    monkeypatch.setattr(leases_module, "GroupLease", lambda *_, **__: made)
    lake, topology = opened(no_session, write_file(tmp_path, availability="kafka"))
    store_identity(lake)
    leases = Leases(Deployment(lake, Connections(topology), EventLog(lake)))
    flow = topology.flow("east->west")
    with pytest.raises(RuntimeError):
        leases.of_flow(flow)
    leases.of_flow(flow)
    leases.of_flow(flow)
    assert joined == ["in vain", "joined"]
    leases.close()
