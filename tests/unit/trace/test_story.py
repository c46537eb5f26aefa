"""What is told of a record, by what is known of it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.durations import duration
from mirrorlake.trace.facts import Facts, FlowRun
from mirrorlake.trace.state import HOLDING_KINDS, state_of
from mirrorlake.trace.story import tell
from tests.support.traces import DELIVERED, MAPPED, MISSING, RECORD, SAMPLE, STAGED, ago, incident

PARKED = {
    "reason": "MSG_SIZE_TOO_LARGE",
    "parked_at": ago(50),
    "replayed_at": None,
    "target_topic": "east.orders",
}
#: The source gives out nothing from offset 42 on, and has records up to 59.
OPEN = {**SAMPLE, "source_end": 42, "staged_end": 42, "transaction_since": ago(50)}
GAP = incident("landing_gap", first_offset=40, last_offset=45, detail="Spark left out records")


def told(facts: Facts) -> str:
    return "\n".join(str(item["said"]) for item in tell(facts)["held_up"])


def test_a_record_that_is_at_the_target() -> None:
    story = tell(DELIVERED)
    assert (story["state"], story["needs_somebody"], story["target_offset"]) == (
        "at_target",
        False,
        52,
    )
    assert story["latency_ms"] == {"landing": 610, "producing": 390, "replication": 1000}
    assert [(item["stage"], item["after_ms"]) for item in story["stages"]] == [
        ("written", None),
        ("landed", 610),
        ("produced", 390),
    ]
    assert "batch 7 of 1,200 records, 400 of its partition" in story["stages"][1]["said"]
    assert (
        "east.orders-0 offset 52" in story["stages"][2]["said"]
        and "short way" in story["stages"][2]["said"]
    )
    assert story["held_up"] == []


@pytest.mark.parametrize(
    ("facts", "state", "needs", "says"),
    [
        (
            replace(STAGED, incidents=[incident()]),
            "refused",
            True,
            "resolve --flow 'east->west' --topic ord",
        ),
        (
            replace(STAGED, incidents=[incident(first_offset=30, last_offset=30)]),
            "blocked",
            True,
            "refused is open",
        ),
        (
            replace(STAGED, incidents=[incident(resolution="skip", resolved_at=ago(9))]),
            "given_up",
            False,
            "skip",
        ),
        (
            replace(STAGED, incidents=[incident(resolution="stop", resolved_at=ago(9))]),
            "stopped",
            True,
            "was stopped",
        ),
        *(
            (
                replace(STAGED, incidents=[incident(is_of_mirror=False, **decided)]),
                "waiting",
                False,
                "the flow is running",
            )
            for decided in (
                {},
                {"resolution": "skip", "resolved_at": ago(9)},
                {"resolution": "stop", "resolved_at": ago(9)},
            )
        ),
        (
            replace(STAGED, incidents=[incident("cluster_unreachable", first_offset=None)]),
            "blocked",
            True,
            "reachable.*closes by itself",
        ),
        (
            replace(STAGED, incidents=[incident("control_acls")]),
            "waiting",
            False,
            "the flow is running",
        ),
        (
            replace(STAGED, incidents=[incident("landing_failed")]),
            "waiting",
            False,
            "the flow is running",
        ),
        (
            replace(STAGED, flow_state=FlowRun("paused", "continuous", ago(5))),
            "paused",
            True,
            "is paused",
        ),
        (replace(STAGED, flow_state=FlowRun("disabled")), "disabled", True, "is disabled"),
        (
            replace(STAGED, flow_state=FlowRun(None, "continuous", ago(61))),
            "not_running",
            True,
            "no process runs",
        ),
        (
            replace(STAGED, flow_state=FlowRun(None, "once", None)),
            "not_running",
            False,
            "run --once",
        ),
        (replace(STAGED, record={**RECORD, "is_echo": True}), "echo", False, "provenance"),
        (
            replace(STAGED, parked=PARKED),
            "parked",
            True,
            "refused it .MSG_SIZE_TOO_LARGE.*replay --parked",
        ),
        (
            replace(STAGED, parked={**PARKED, "replayed_at": ago(3)}),
            "replayed",
            False,
            "sent again at",
        ),
        (replace(STAGED, passed={"source_last": 43}), "passed_over", True, "replay --into-mirror"),
        (replace(STAGED, passed={"source_last": 41, "first_offset": 42}), "waiting", False, "is r"),
        (replace(STAGED, passed={"first_offset": 43}), "before_start", False, "begins at offset"),
        (
            replace(STAGED, passed={"source_last": 43, "replayed_at": ago(3)}),
            "replayed",
            False,
            "out of order",
        ),
        (replace(STAGED, passed={"forgotten_at": ago(3)}), "forgotten", False, "forget"),
        (replace(MISSING, around={"forgotten_at": ago(3)}), "forgotten", False, "forget"),
        (
            replace(
                STAGED,
                passed={"source_last": 43},
                incidents=[incident("stage_trimmed", resolution="continue", resolved_at=ago(9))],
            ),
            "given_up",
            False,
            "had not got it",
        ),
        (replace(DELIVERED, mapped={**MAPPED, "lives": False}), "target_gone", False, "made again"),
        (replace(MISSING, newest=OPEN), "waiting", False, "open since 2026-03-01 11:59:10.*lands"),
        (
            replace(MISSING, newest={**OPEN, "transaction_since": None}),
            "waiting",
            False,
            "in or behind a transaction that is open: ",
        ),
        (
            replace(MISSING, newest=OPEN, flow_state=FlowRun(None, "continuous", ago(61))),
            "not_running",
            True,
            "is open since .*: no process runs the flow",
        ),
        (
            replace(MISSING, newest={**OPEN, "source_high_watermark": 42}),
            "beyond_end",
            False,
            "ended at 42",
        ),
        (
            replace(MISSING, newest={**OPEN, "source_high_watermark": None}),
            "beyond_end",
            False,
            "ended at 42",
        ),
        (
            replace(MISSING, newest=None, around={"before": 41, "behind": None}),
            "unknown",
            True,
            "not known",
        ),
        (replace(MISSING, newest=None), "no_record", False, "43 behind it"),
        (replace(MISSING, newest={**SAMPLE, "staged_end": 42}), "waiting", False, "not yet landed"),
        (
            replace(
                MISSING, newest={**SAMPLE, "staged_end": 42}, incidents=[incident("landing_failed")]
            ),
            "blocked",
            True,
            "landing_failed.*nothing is to be decided",
        ),
        (
            MISSING,
            "no_record",
            False,
            "marker of a transaction.*the stage has 41 before it and 43 behind it",
        ),
        (
            replace(
                MISSING,
                around={"before": None, "behind": 50},
                newest={**SAMPLE, "source_start": 50},
            ),
            "before_start",
            False,
            "begins at 50",
        ),
        (
            replace(MISSING, around={"removed_at": ago(9)}),
            "removed",
            False,
            "`maintain` deleted it",
        ),
        (
            replace(
                MISSING,
                incidents=[incident("source_truncated", resolved_at=ago(9), resolution="continue")],
            ),
            "lost",
            False,
            "it is lost",
        ),
        (
            replace(MISSING, incidents=[GAP]),
            "lost",
            True,
            "it is lost, if there was.*resolve --flow 'east->west' --topic ord",
        ),
        (
            replace(MISSING, newest={**OPEN, "source_high_watermark": 42}, incidents=[GAP]),
            "lost",
            True,
            "left out records among these offsets",
        ),
        (
            replace(MISSING, incidents=[{**GAP, "resolved_at": ago(9)}]),
            "lost",
            False,
            "left out records among these offsets",
        ),
        (replace(MISSING, incidents=[{**GAP, "last_offset": 41}]), "no_record", False, "marker"),
        (
            replace(
                MISSING, newest={**SAMPLE, "staged_end": 42}, incidents=[{**GAP, "last_offset": 41}]
            ),
            "waiting",
            False,
            "not yet landed",
        ),
    ],
)
def test_where_a_record_is(facts: Facts, state: str, needs: bool, says: str) -> None:
    found = state_of(facts)
    assert (found.name, found.needs_somebody) == (state, needs)
    assert re.search(says, found.sentence), found.sentence


def test_a_pause_in_between_is_told_and_others_are_not() -> None:
    late = replace(DELIVERED, mapped={**MAPPED, "produced_at": ago(20)})
    during = {"since": ago(95), "until": ago(25)}
    assert "no process ran the flow for 1 min 10 s" in told(replace(late, pauses=[during]))
    assert told(replace(late, pauses=[{"since": ago(900), "until": ago(101)}])) == ""
    assert told(replace(late, pauses=[{"since": ago(19), "until": ago(1)}])) == ""
    before = {"since": ago(100), "until": ago(70), "is_first": True}
    assert "the flow started for the first time in a week" in told(replace(late, pauses=[before]))


def test_incidents_are_told_that_were_open_on_its_way() -> None:
    late = replace(DELIVERED, mapped={**MAPPED, "produced_at": ago(20)})
    unreachable = incident("cluster_unreachable", first_offset=None, topic=None, partition=None)
    assert "(still open)" in told(replace(late, incidents=[unreachable]))
    closed = {**unreachable, "resolved_at": ago(30), "resolution": "it came through again"}
    assert "(closed: it came through again)" in told(replace(late, incidents=[closed]))
    assert told(replace(late, incidents=[{**unreachable, "at": ago(19)}])) == "", "behind it"
    assert (
        told(replace(late, incidents=[{**closed, "at": ago(300), "resolved_at": ago(200)}])) == ""
    ), "before it"
    assert told(replace(late, incidents=[incident("control_acls")])) == ""


def test_a_gap_of_landing_is_told_of_the_records_that_it_names() -> None:
    assert "landing_gap, which names this record" in told(replace(MISSING, incidents=[GAP]))
    assert told(replace(MISSING, incidents=[{**GAP, "last_offset": 41}])) == ""


def test_what_waited_in_front_of_it() -> None:
    slow = replace(
        DELIVERED,
        record={**RECORD, "landed_at": ago(90)},
        mapped={**MAPPED, "produced_at": ago(80)},
    )
    queued = replace(
        slow, at_landing={**SAMPLE, "sampled_at": ago(92), "source_end": 60, "staged_end": 12}
    )
    assert "30 offsets of its partition waited in front of it at the source" in told(queued)
    assert "7 staged records of its partition" in told(replace(slow, backlog=7))
    assert told(replace(slow, backlog=0)) == ""
    assert told(replace(DELIVERED, backlog=7)) == "", "in 390 ms"


def test_a_late_producer_is_told_from_a_backlog() -> None:
    """Its timestamp is a minute old, and ten seconds before it was landed the source had not got
    it."""
    landed = {**RECORD, "landed_at": ago(40), "written_at": ago(100)}
    late = replace(
        DELIVERED,
        record=landed,
        at_landing={**OPEN, "sampled_at": ago(50), "source_high_watermark": 42},
    )
    assert "at least 50.0 s of its wait passed between its timestamp and the source's log" in told(
        late
    )


def test_an_open_transaction_is_told_from_a_late_producer() -> None:
    landed = {**RECORD, "landed_at": ago(40), "written_at": ago(100)}
    held = replace(DELIVERED, record=landed, at_landing={**OPEN, "sampled_at": ago(50)})
    assert "the source had it in or behind an open transaction" in told(held)
    assert "late or slow producer" not in told(held)


def test_a_merged_row_of_the_map_promises_nothing() -> None:
    story = tell(replace(DELIVERED, mapped={**MAPPED, "first_batch_id": 2}))
    assert (
        "by then" in story["stages"][-1]["said"]
        and "batches 2 to 9 were merged" in story["stages"][-1]["said"]
    )


def test_who_has_read_past_it() -> None:
    row = {"position": 43, "seen_at": ago(2), "is_past": True}
    readers: list[Mapping[str, Any]] = [
        {**row, "group_id": "billing", "side": "source", "passed_at": ago(90)},
        {**row, "group_id": "reports", "side": "target", "passed_at": None, "is_past": False},
    ]
    story = tell(replace(DELIVERED, readers=readers))
    assert (
        story["stages"][-1]["after_ms"] == 10_000
        and "billing is past it at the source" in story["stages"][-1]["said"]
    )
    assert len(story["stages"]) == 4 and len(story["readers"]) == 2


def test_durations() -> None:
    given = {
        0: "0 ms",
        999: "999 ms",
        12_340: "12.3 s",
        200_000: "3 min 20 s",
        60_000: "1 min",
        -1_500: "-1.5 s",
    }
    assert {value: duration(value) for value in given} == given
    assert (
        duration(18_120_000) == "5 h 2 min"
        and duration(3 * 86_400_000 + 4 * 3_600_000) == "3 d 4 h"
    )


def test_every_kind_that_holds_is_one_that_there_is() -> None:
    page = (Path(__file__).parents[3] / "docs" / "incidents.md").read_text(encoding="utf-8")
    assert {kind for kind in HOLDING_KINDS if f"`{kind}`" not in page} <= {"source_data_lost"}
