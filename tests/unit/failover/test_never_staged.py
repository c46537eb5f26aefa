"""What a source had and the lake never got is told after the source went down broker by broker, and
however long ago that was."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.failover.divergence import divergence_of
from mirrorlake.lake.lake import Lake
from tests.support.lake_rows import FLOW, ago, append, no_session, opened, sample, write_file

UNSTAGED = {"staged_end": 80}
#: Since then the partition could not be sampled.
LOST_AT = 3600.0


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return opened(no_session, write_file(tmp_path))[0]


def lost(**more: object) -> dict[str, object]:
    """A row that says that a partition could not be sampled any more."""
    place = {"flow": FLOW, "topic": "orders", "partition": 0}
    return {**place, "sampled_at": ago(LOST_AT), "target_topic": "east.orders", **more}


def refused(partition: int | None, **more: object) -> dict[str, object]:
    place = {"flow": FLOW, "kind": "source_refused", "topic": "orders", "partition": partition}
    return {**place, "at": ago(LOST_AT), "detail": "no leader", **more}


def told(lake: Lake) -> list[tuple[Any, ...]]:
    rows = divergence_of(lake.now, FLOW)["never_staged"]
    return [(row["partition"], row["first_offset"], row["last_offset"]) for row in rows]


@pytest.mark.parametrize("partition", [0, None], ids=["the partition", "its topic"])
def test_of_what_could_not_be_read_when_the_others_still_were(
    lake: Lake, partition: int | None
) -> None:
    still = sample(60, 100, 100, **{"partition": 1, "staged_end": 95})
    append(lake, "positions", [sample(LOST_AT + 60, 80, 100, **UNSTAGED), lost(), still])
    append(lake, "incidents", [refused(partition)])
    assert told(lake) == [(0, 80, 99), (1, 95, 99)]


@pytest.mark.parametrize(
    "incidents",
    [[], [refused(1)], [refused(0, resolved_at=ago(100), resolution="it came through again")]],
    ids=["none", "of another partition", "that is over"],
)
def test_not_of_what_is_gone_or_not_selected_any_more(
    lake: Lake, incidents: list[dict[str, object]]
) -> None:
    still = sample(60, 100, 100, partition=1)
    append(lake, "positions", [sample(LOST_AT + 60, 80, 100, **UNSTAGED), lost(), still])
    append(lake, "incidents", incidents)
    assert told(lake) == []


def test_of_a_flow_that_no_process_has_run_for_long(lake: Lake) -> None:
    days = 40 * 86_400
    append(lake, "positions", [sample(days, 80, 100, source_high_watermark=110, **UNSTAGED)])
    assert told(lake) == [(0, 80, 109)]


def test_not_of_what_was_staged_since(lake: Lake) -> None:
    append(lake, "positions", [sample(120, 80, 100, **UNSTAGED), sample(60, 100, 100)])
    assert told(lake) == []
