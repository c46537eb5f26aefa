"""Which parked records wait, and hold back what `maintain` deletes: those that can be sent."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from mirrorlake.lake import table_upkeep
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.maintain import stage_of
from mirrorlake.lake.retention import cut_records
from tests.support.lake_rows import (
    FLOW,
    append,
    no_session,
    opened,
    parked_row,
    run_row,
    staged,
    write_file,
)

NOW = datetime.now(timezone.utc)


def generation(number: int) -> dict[str, object]:
    return {
        "flow": FLOW,
        "topic": "orders",
        "target_topic": "east.orders",
        "target_generation": number,
        "topic_id": f"id{number}",
        "begins": "stage",
        "began": [0],
        "started_at": NOW,
    }


@pytest.mark.parametrize("newest", [None, 0, 1])
def test_a_record_that_a_topic_refused_which_is_over_does_not_wait_and_holds_nothing(
    tmp_path: Path, newest: int | None
) -> None:
    """`replay --parked` sends none of them; the new topic gets them by the map, or never."""
    lake, _ = opened(no_session, write_file(tmp_path))
    parked = [
        parked_row(offset, NOW, number)
        for offset, number in ((12, 0), (18, 1 if newest == 1 else 0))
    ]
    lake.append("parked", rows_of("parked", parked))
    if newest is not None:
        generations = [generation(number) for number in range(newest + 1)]
        lake.append("target_generations", rows_of("target_generations", generations))
    waiting = [row["offset"] for row in lake.now.table_rows("unsent_parked")]
    assert sorted(waiting) == ([18] if newest == 1 else [12, 18])
    first = 18 if newest == 1 else 12
    assert table_upkeep.oldest_parked(lake, FLOW) == {("orders", 0): (0, first)}


@pytest.mark.parametrize(
    ("resolution", "policy", "held"),
    [
        (None, "default", [12]),
        ("again", "default", [12]),
        ("stop", "default", []),
        ("stop", "identity", [12]),
    ],
    ids=["it is not decided", "again", "stopped", "another name since"],
)
def test_a_topic_that_was_stopped_by_a_decision_holds_nothing(
    tmp_path: Path, resolution: str | None, policy: str, held: list[int]
) -> None:
    """Nothing is sent there any more: the stage was kept from the first parked record on, for ever.
    Under another policy all goes to a topic of another name."""
    lake, topology = opened(no_session, write_file(tmp_path, flows={FLOW: {"policy": policy}}))
    append(lake, "records", staged(range(100)))
    append(lake, "offset_map", [run_row(0, 11), run_row(13, 49)])
    lake.append("parked", rows_of("parked", [parked_row(12, NOW, 0)]))
    lake.append("target_generations", rows_of("target_generations", [generation(0)]))
    gone = {"flow": FLOW, "topic": "orders", "target_topic": "east.orders", "at": NOW}
    decided = {"kind": "target_recreated", "target_generation": 0, "resolution": resolution}
    gone |= decided | ({} if resolution is None else {"resolved_at": NOW})
    lake.append("incidents", rows_of("incidents", [gone]))
    later = NOW + timedelta(days=1)
    cuts, retained = cut_records(*stage_of(lake, topology, later, NOW - timedelta(days=1)))
    assert [row.offset for row in retained] == held
    assert [cut.below for cut in cuts] == (held or [99])
