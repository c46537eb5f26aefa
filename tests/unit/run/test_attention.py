"""What `status` says first, and how a flow stands in words."""

from datetime import datetime
from typing import Any

import pytest

from mirrorlake.run.attention import attention, no_decision, standing

AT = datetime(2026, 3, 1, 12, 3)
FLOW = {
    "flow": "a->b",
    "enabled": True,
    "state": "idle",
    "sampled_at": AT,
    "lag_records": 0,
    "open_incidents": 0,
}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "caught up"),
        ({"state": "replicating", "lag_records": 3}, "running"),
        ({"state": "replicating"}, "caught up"),
        ({"state": "not running", "lag_records": 3}, "stopped since 2026-03-01 12:03"),
        ({"state": "incident", "sample_age_seconds": 3}, "waiting for you"),
        (
            {"state": "incident", "sample_age_seconds": 61},
            "waiting for you, stopped since 2026-03-01 12:03",
        ),
        ({"enabled": False, "state": "incident"}, "disabled"),
        ({"paused": True}, "paused"),
        ({"sampled_at": None}, "never run"),
        ({"sampled_at": None, "last_produced_at": AT}, "not sampled yet"),
        ({"sampled_at": None, "open_incidents": 1}, "waiting for you"),
    ],
)
def test_how_a_flow_stands(more: dict[str, Any], said: str) -> None:
    assert standing({**FLOW, **more}) == said
    assert standing({"flow": "a->b", "open_incidents": 0, "enabled": True}) == "never run"


def test_a_flow_whose_lease_no_process_has_runs_no_more() -> None:
    """However young its last sample is."""
    stopped = "stopped since 2026-03-01 12:03"
    assert standing({**FLOW, "state": "replicating", "lag_records": 3}, has_ended=True) == stopped
    waits = {**FLOW, "state": "incident", "sample_age_seconds": 3}
    assert standing(waits, has_ended=True) == f"waiting for you, {stopped}"
    assert standing(FLOW, has_ended=True) == "caught up"


@pytest.mark.parametrize("kind", ["landing_failed", "flow_stopped", "control_samples"])
def test_what_no_decision_changes_offers_none(kind: str) -> None:
    incident = {"flow": "a->b", "kind": kind, "topic": None, "detail": "the disk is full", "at": AT}
    (said,) = attention([incident], [])
    assert said == f"a->b: {kind}: the disk is full; {no_decision(kind)}"
    assert "resolve" not in said and "mirrorlake run" in said


def test_what_is_decided_comes_first_and_says_what_to_type() -> None:
    alert = {
        "flow": "a->b",
        "topic": "t",
        "partition": 1,
        "value": 9.0,
        "threshold": 5.0,
        "detail": "slow",
    }
    incident = {
        "flow": "a->b",
        "kind": "target_refused",
        "topic": "t",
        "partition": 1,
        "detail": "too large",
        "at": AT,
    }
    alerts = [
        {**alert, "alert": name}
        for name in ("latency", "incident", "lag", "not_running", "new_kind")
    ]
    found = attention([incident], alerts)
    assert [line.split(":")[1].split()[0] for line in found] == [
        "target_refused", "not_running", "lag", "latency", "new_kind",
    ]  # fmt: skip
    assert found[0].endswith("mirrorlake resolve --flow 'a->b' --topic t --partition 1")
    assert found[2] == "a->b: lag of t-1 (9 > 5): slow"
    assert attention([], []) == []
