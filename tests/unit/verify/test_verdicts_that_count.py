"""Which verdict on a range counts: what a comparison finds, from when it is noted on, whatever the
clock said when the range was compared before; and none on what the target has lost since it began.
"""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.errors import TargetLost
from mirrorlake.lake.decisions import PRODUCE_AGAIN, Lost
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.incidents import Incident, IncidentKey, Incidents
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.rising_times import time_behind
from mirrorlake.run.target_losses import MappedLoss, _take_out_proofs
from mirrorlake.verify import auditor
from mirrorlake.verify.auditor import Auditor
from mirrorlake.verify.job import Compared, Range
from mirrorlake.verify.outcome import Outcome
from mirrorlake.verify.scope import FlowScope
from mirrorlake.verify.verdict import MISSING, Allowances, Difference, Verdict
from tests.support.lake_rows import FLOW, append, no_session, opened, run_row, write_file

COUNT, KEPT = 10, 6


def with_a_map(directory: Path) -> Lake:
    """Records that were brought to the target."""
    lake = opened(no_session, write_file(directory))[0]
    append(lake, "offset_map", [run_row(0, COUNT - 1)])
    return lake


def a_lake(directory: Path, audited_at: datetime) -> Lake:
    """Records that were brought to the target, and proven at a time."""
    lake = with_a_map(directory)
    row: dict[str, Any] = {"flow": FLOW, "topic": "orders", "partition": 0, "generation": 0}
    row |= {"first_offset": 0, "last_offset": COUNT - 1, "stage_count": COUNT, "verdict": "proven"}
    row |= {"target_topic": "east.orders", "target_generation": 0, "audited_at": audited_at}
    lake.append("audits", rows_of("audits", [row]))
    return lake


def proven(lake: Lake) -> int:
    (row,) = lake.ask_table("proof_status")
    return int(row["proven_records"])


AHEAD = datetime.now(timezone.utc) + timedelta(hours=1)


def a_range() -> Range:
    return Range(
        *("orders", 0, 0, 0, COUNT - 1),
        target_topic="east.orders",
        target_generation=0,
        target_first=0,
        target_end=COUNT,
        files=(),
        segments=(),
        allowed=Allowances(),
    )


def compare(
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
    compared: Compared,
    meanwhile: Callable[[], object] = lambda: None,
) -> list[Any]:
    """A comparison of all; something happens once its records are read. Returns what was left."""
    monkeypatch.setattr(auditor, "ranges_of", lambda *_: [a_range()])
    flow: Any = SimpleNamespace(name=FLOW, source="east")
    scope = FlowScope.__new__(FlowScope)
    scope._lake, scope.flow, scope.audited_at = lake, flow, None
    scope._audited = scope._read_audits()

    def read(*_: object) -> list[Compared]:
        meanwhile()
        return [compared]

    workers: Any = SimpleNamespace(compare=read)
    deployment: Any = SimpleNamespace(lake=lake)
    here = Auditor(deployment, lambda _offsets: workers, SimpleNamespace())  # type: ignore[arg-type]
    nothing: Any = None
    one: Any = SimpleNamespace(scope=SimpleNamespace(key=("orders", 0)))
    left = here._compare(scope, [one], nothing, workers, Outcome())
    here._settle(FLOW, ())
    return left


def test_a_difference_is_not_hidden_by_a_proof_of_a_clock_that_was_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays unproven, and its incident open."""
    lake = a_lake(tmp_path, AHEAD)
    assert proven(lake) == COUNT
    lost = Verdict((Difference(MISSING, 3, 3, target_offset=3),), {})
    compare(lake, monkeypatch, Compared((COUNT, COUNT, COUNT - 1), ("a", "a", "b"), lost))
    assert proven(lake) == 0
    assert Incidents(lake).open_kinds(FLOW) == {"content_differs"}


def test_what_a_target_lost_is_not_proven_by_a_clock_that_was_ahead(tmp_path: Path) -> None:
    lake = a_lake(tmp_path, AHEAD)
    _take_out_proofs(lake, FLOW, {("orders", 0): MappedLoss("east.orders", Lost(0, 0))})
    assert proven(lake) == 0


def lost_from(offset: int, name: str | None = None) -> TargetLost:
    """A target topic lost all records from an offset on, which is the same at both sides."""
    return TargetLost(
        "planted",
        target_offset=offset,
        topic="orders",
        partition=0,
        first_offset=offset,
        last_offset=COUNT - 1,
        generation=0,
        target_generation=0,
        target_topic=name,
    )


@pytest.mark.parametrize("name", [None, "east.orders", "orders"])
def test_what_another_target_topic_lost_takes_no_proof_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    """One of an earlier policy. Where none is named, it may be any."""
    lake = a_lake(tmp_path, datetime.now(timezone.utc) - timedelta(hours=1))
    Incidents(lake).report([Incident(FLOW, "target_lost", lost_from(KEPT, name))])
    assert proven(lake) == (COUNT if name == "orders" else KEPT)
    key = IncidentKey(FLOW, "target_lost", "orders", 0)

    def lose() -> None:
        Incidents(lake).report([Incident(FLOW, "target_lost", lost_from(0, name))])

    Incidents(lake).settle_all([key], PRODUCE_AGAIN)
    monkeypatch.setattr(auditor, "time_behind", lambda _newest: AHEAD)
    whole = Compared((COUNT,) * 3, ("a",) * 3, Verdict((), {}))
    assert len(compare(lake, monkeypatch, whole, lose)) == (name != "orders")


@pytest.mark.parametrize("is_decided", [False, True])
@pytest.mark.parametrize(
    "was_proven",
    [
        pytest.param(
            False,
            marks=pytest.mark.wide("test_what_a_target_loses_while_it_is_compared_is_not_proven"),
        ),
        True,
    ],
)
def test_what_a_target_loses_while_it_is_compared_is_not_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was_proven: bool, is_decided: bool
) -> None:
    """It was read before, and what came of it is noted behind the loss, and the decision."""
    lake = a_lake(tmp_path, datetime.now(timezone.utc)) if was_proven else with_a_map(tmp_path)
    incidents = Incidents(lake)
    key = IncidentKey(FLOW, "target_lost", "orders", 0)
    whole = Compared((COUNT,) * 3, ("a",) * 3, Verdict((), {}))

    def lose() -> None:
        incidents.report([Incident(FLOW, key.kind, lost_from(KEPT))])
        _take_out_proofs(lake, FLOW, {("orders", 0): MappedLoss("east.orders", Lost(0, KEPT))})
        if is_decided:
            incidents.settle_all([key], PRODUCE_AGAIN)

    compare(lake, monkeypatch, whole, lose)
    assert proven(lake) == KEPT, "and what lies in front of the loss is"
    (lost,) = [row for row in lake.ask_table("proofs") if not row["proven"]]
    assert (lost["first_offset"], lost["verdict"]) == (KEPT, "missing_at_target")
    incidents.settle_all([key], PRODUCE_AGAIN)
    assert proven(lake) == KEPT, "by no decision alone"
    compare(lake, monkeypatch, whole)
    assert proven(lake) == COUNT


@pytest.mark.parametrize("is_decided", [False, True])
def test_a_clock_that_is_ahead_does_not_prove_what_a_target_loses_while_it_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_decided: bool
) -> None:
    """That of the host that compares: what it read before would be newer than the decision."""
    lake = with_a_map(tmp_path)
    incidents = Incidents(lake)
    key = IncidentKey(FLOW, "target_lost", "orders", 0)
    whole = Compared((COUNT,) * 3, ("a",) * 3, Verdict((), {}))
    error = lost_from(KEPT)
    if is_decided:
        incidents.report([Incident(FLOW, key.kind, error)])

    def lose() -> None:
        if not is_decided:
            incidents.report([Incident(FLOW, key.kind, error)])
        incidents.settle_all([key], PRODUCE_AGAIN)

    monkeypatch.setattr(auditor, "time_behind", lambda _newest: AHEAD)
    left = compare(lake, monkeypatch, whole, lose)
    assert proven(lake) == 0
    assert [extents for _, extents in left] == [[(0, COUNT - 1)]], "and it is said"


@pytest.mark.parametrize("zone", [timezone.utc, None])
def test_times_rise(zone: timezone | None) -> None:
    before = datetime.now(timezone.utc)
    assert before <= time_behind(None) and before <= time_behind(before)
    newest = AHEAD.replace(tzinfo=zone)
    assert AHEAD < time_behind(newest) < AHEAD + timedelta(milliseconds=1)
