"""A process that ends leaves what another one may go on with as soon as it does not do it any
more."""

import threading
from types import SimpleNamespace
from typing import Any

from mirrorlake.run.leases import Leases
from mirrorlake.worker import Worker

FLOW, LANDING = "flow east->west", "landing of cluster east"


def test_a_group_is_left_while_other_work_is_still_being_ended() -> None:
    slow_may_end, flow_left = threading.Event(), threading.Event()
    left: list[str] = []

    def kept(what: str, leaves: threading.Event) -> Any:
        def leave() -> None:
            left.append(what)
            leaves.set()

        return SimpleNamespace(leave=leave)

    connections = SimpleNamespace(topology=SimpleNamespace(availability="kafka"))
    deployment: Any = SimpleNamespace(lake=None, connections=connections, event_log=None)
    leases = Leases(deployment)
    leases._kept.update({LANDING: kept(LANDING, threading.Event()), FLOW: kept(FLOW, flow_left)})

    def lands() -> None:
        assert slow_may_end.wait(10)

    threads = {LANDING: Worker("landing", lands), FLOW: Worker("flow", lambda: None)}
    for thread in threads.values():
        thread.start()
    ending = threading.Thread(target=leases.leave_behind, args=(threads,))
    ending.start()
    assert flow_left.wait(10), "it waits for what takes longer"
    assert left == [FLOW]
    slow_may_end.set()
    ending.join(10)
    assert left == [FLOW, LANDING] and not leases._kept
