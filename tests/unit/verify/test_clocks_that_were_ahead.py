"""What a comparison finds counts from when it is noted on, whatever the clock said when the same
range was compared before."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.incidents import Incidents, Lost
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

COUNT = 10


def a_lake(directory: Path, audited_at: datetime) -> Lake:
    """Records that were brought to the target, and proven at a time."""
    lake = opened(no_session, write_file(directory))[0]
    append(lake, "offset_map", [run_row(0, COUNT - 1)])
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


def test_a_difference_is_not_hidden_by_a_proof_of_a_clock_that_was_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays unproven, and its incident open."""
    lake = a_lake(tmp_path, AHEAD)
    assert proven(lake) == COUNT
    monkeypatch.setattr(auditor, "ranges_of", lambda *_: [a_range()])
    flow: Any = SimpleNamespace(name=FLOW, source="east")
    scope = FlowScope.__new__(FlowScope)
    scope._lake, scope.flow, scope.audited_at = lake, flow, None
    scope._audited = scope._read_audits()
    lost = Verdict((Difference(MISSING, 3, 3, target_offset=3),), {})
    compared = Compared((COUNT, COUNT, COUNT - 1), ("a", "a", "b"), lost)
    workers: Any = SimpleNamespace(compare=lambda *_: [compared])
    deployment: Any = SimpleNamespace(lake=lake)
    here = Auditor(deployment, lambda _offsets: workers, SimpleNamespace())  # type: ignore[arg-type]
    nothing: Any = None
    here._compare(scope, [], nothing, workers, Outcome())
    here._settle(FLOW, ())
    assert proven(lake) == 0
    assert Incidents(lake).open_kinds(FLOW) == {"content_differs"}


def test_what_a_target_lost_is_not_proven_by_a_clock_that_was_ahead(tmp_path: Path) -> None:
    lake = a_lake(tmp_path, AHEAD)
    _take_out_proofs(lake, FLOW, {("orders", 0): MappedLoss("east.orders", Lost(0, 0))})
    assert proven(lake) == 0


@pytest.mark.parametrize("zone", [timezone.utc, None])
def test_times_rise(zone: timezone | None) -> None:
    before = datetime.now(timezone.utc)
    assert before <= time_behind(None) and before <= time_behind(before)
    newest = AHEAD.replace(tzinfo=zone)
    assert AHEAD < time_behind(newest) < AHEAD + timedelta(milliseconds=1)
