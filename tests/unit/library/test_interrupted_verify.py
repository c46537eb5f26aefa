"""`verify` that is stopped says of each flow what it did not compare, however early that was."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mirrorlake
from mirrorlake.library import verifying
from mirrorlake.library.verify_answer import Verified
from mirrorlake.verify.auditor import Auditor
from mirrorlake.verify.not_compared import INTERRUPTED, NotCompared
from mirrorlake.verify.outcome import Outcome
from mirrorlake.verify.plan import Chosen
from tests.support.lake_rows import no_session, opened, write_file

FLOWS = {"east->west": {}, "east->north": {}}


class Fake:
    """An auditor that has something to compare of each flow, and is stopped in one of them."""

    audited: list[str]

    def __init__(
        self, _deployment: object, _workers: object, stop: threading.Event, _report: object
    ) -> None:
        self._stop = stop
        self.audited = []

    def audit(
        self, flow: Any, _topics: object, _choice: object, _limit: object, outcome: Outcome
    ) -> None:
        left = self._stop.is_set()
        self._stop.set()
        stretch = NotCompared("orders", 0, 0, first=0, last=9, reason=INTERRUPTED)
        outcome.held_up[flow.name] = [stretch] if left else []

    def look_whether_on_the_way(self, _outcome: Outcome) -> None:
        """Nothing is."""


def verified(
    directory: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool, watch: bool = False
) -> Verified:
    monkeypatch.setattr(verifying, "Auditor", Fake)
    stop = threading.Event()
    if stopped:
        stop.set()
    file = write_file(directory, flows=FLOWS)
    opened(no_session, file)
    return mirrorlake.open(file).verify(watch=watch, stop=stop)


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize(
    ("stopped", "left"), [(True, ["east->north", "east->west"]), (False, ["east->west"])]
)
def test_a_flow_that_it_did_not_come_to_is_not_taken_for_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool, left: list[str], watch: bool
) -> None:
    """It was stopped before the first one, or in it."""
    found = verified(tmp_path, monkeypatch, stopped, watch)
    assert [row["flow"] for row in found.not_compared] == left
    assert not found.complete


def test_who_was_stopped_before_compares_nothing_and_names_all_of_it() -> None:
    stop = threading.Event()
    stop.set()
    reader = SimpleNamespace(directory=None)
    lake = SimpleNamespace(check_for_writing=lambda: None, reader=reader)
    deployment: Any = SimpleNamespace(lake=lake)

    def nobody(_offsets: int) -> Any:
        raise AssertionError("nobody compares")

    scope: Any = "a partition"
    chosen = [Chosen(scope, [(0, 9), (10, 19)])]
    auditor = Auditor(deployment, nobody, stop)
    none: Any = None
    assert auditor._compare_all(none, chosen, none, Outcome()) == [(scope, [(0, 9), (10, 19)])]
