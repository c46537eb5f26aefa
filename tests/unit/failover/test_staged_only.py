"""What the stage has and the target never got is told of also where the host died before anything
of its topic was produced, or sampled."""

from pathlib import Path

import pytest

from mirrorlake.failover.divergence import divergence_of
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    opened,
    run_row,
    sample,
    staged,
    write_file,
)

OTHER = "east->north"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Of two flows: one has brought all there was of orders, and both were running when payments
    came."""
    lake = opened(no_session, write_file(tmp_path, flows={FLOW: {}, OTHER: {}}))[0]
    append(lake, "objectives", [{"flow": name, "enabled": True} for name in (FLOW, OTHER)])
    append(lake, "records", staged(range(10)))
    append(lake, "offset_map", [run_row(0, 9)])
    append(lake, "positions", [sample(60, 10, 10)])
    append(lake, "records", staged(range(5), topic="payments"))
    return lake


def told(lake: Lake, flow: str) -> list[tuple[object, ...]]:
    rows = divergence_of(lake.now, flow)["staged_only"]
    return [(row["topic"], row["first_offset"], row["last_offset"]) for row in rows]


def test_of_a_topic_that_no_flow_had_come_to(lake: Lake) -> None:
    assert told(lake, FLOW) == told(lake, OTHER) == [("payments", 0, 4)]
    assert told(lake, "west->east") == told(lake, "replay:1:east->west") == []


def test_of_one_whose_mirror_was_just_made(lake: Lake) -> None:
    made = {"flow": FLOW, "topic": "payments", "target_topic": "east.payments", "topic_id": "x"}
    made |= {"target_generation": 0, "begins": "stage", "started_at": ago(1)}
    lake.append("target_generations", rows_of("target_generations", [made]))
    assert told(lake, FLOW) == [("payments", 0, 4)]
    assert told(lake, OTHER) == [], "which may not select it"


def test_of_one_that_a_flow_began_behind(lake: Lake) -> None:
    start = {"flow": FLOW, "topic": "payments", "partition": 0, "generation": 0}
    start |= {"first_offset": 3, "asked": "end", "noted_at": ago(1)}
    lake.append("starts", rows_of("starts", [start]))
    assert told(lake, FLOW) == [("payments", 3, 4)]
    assert told(lake, OTHER) == []
