"""Which parked records wait, and hold back what `maintain` deletes: those that can be sent."""

from datetime import datetime, timezone
from pathlib import Path

import pytest

from mirrorlake.lake import table_upkeep
from mirrorlake.lake.definitions import rows_of
from tests.support.lake_rows import FLOW, no_session, opened, parked_row, write_file

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
