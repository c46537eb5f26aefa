"""How the process that asks about groups goes through them: side by side, in order, within its
time. No Kafka."""

import threading
from concurrent.futures import Future
from typing import Any

from mirrorlake.kafka import groups_worker
from mirrorlake.kafka.groups_worker import BUDGET_SECONDS, GROUPS_AT_ONCE, ask_in_order


def test_one_that_waits_holds_up_none_but_itself() -> None:
    names = [f"g{number}" for number in range(3 * GROUPS_AT_ONCE)]
    waiting: Future[Any] = Future()

    def ask(group: str) -> "Future[Any]":
        if group == "g0":
            return waiting
        if group == names[-1]:  # all the others were asked while it waited
            threading.Timer(0.05, waiting.set_result, ["late"]).start()
        answered: Future[Any] = Future()
        answered.set_result(group)
        return answered

    found = list(ask_in_order(names, ask))
    assert [group for group, _ in found[-1:]] == ["g0"]
    assert {group for group, future in found if future is not None} == set(names)


def test_so_many_are_under_way_and_no_more() -> None:
    under_way: list[Future[Any]] = []

    def ask(_group: str) -> "Future[Any]":
        under_way.append(Future())
        return under_way[-1]

    found = ask_in_order((f"g{number}" for number in range(2 * GROUPS_AT_ONCE)), ask)
    threading.Timer(0.05, lambda: under_way[0].set_result(None)).start()
    next(found)
    assert len(under_way) == GROUPS_AT_ONCE


def test_when_its_time_is_over_the_rest_is_told_as_not_asked() -> None:
    now = [0.0]

    def ask(_group: str) -> "Future[Any]":
        now[0] += BUDGET_SECONDS / 4
        answered: Future[Any] = Future()
        answered.set_result(None)
        return answered

    found = list(ask_in_order(["a", "b", "c", "d", "e", "f"], ask, lambda: now[0]))
    assert [group for group, future in found if future is None] == ["e", "f"]


def test_an_id_that_the_client_refuses_is_told_and_the_others_go_on() -> None:
    def ask(group: str) -> "Future[Any]":
        if not group:
            raise ValueError("invalid group id")
        answered: Future[Any] = Future()
        answered.set_result(group)
        return answered

    found = {
        group: future and future.exception()
        for group, future in groups_worker.ask_in_order(["", "a"], ask)
    }
    assert isinstance(found[""], ValueError) and found["a"] is None
