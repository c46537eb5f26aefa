"""A comparison may take days: each wave of it reads clusters and files as they are to be read by
then."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.verify import auditor
from mirrorlake.verify.auditor import Auditor
from mirrorlake.verify.outcome import Outcome
from mirrorlake.verify.plan import Chosen


def test_each_is_given_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditor, "WAVE_RANGES", 1)
    given: list[tuple[int, object]] = []
    tokens = iter(range(9))
    made: Any = Auditor.__new__(Auditor)
    made._stop, made._report = threading.Event(), lambda _outcome: None
    made._workers = lambda _offsets: SimpleNamespace(tasks=1)
    made._clusters = lambda _flow, _bytes: next(tokens)

    def compare(_scope: object, wave: list[Chosen], clusters: object, *_: object) -> list[Any]:
        given.append((sum(len(one.extents) for one in wave), clusters))
        return []

    made._compare = compare
    scope: Any = SimpleNamespace(flow=None)
    chosen = [Chosen(scope, [(first, first) for first in range(9)])]
    assert made._compare_all(scope, chosen, None, Outcome()) == []
    assert given == [(4, 0), (4, 1), (1, 2)]
