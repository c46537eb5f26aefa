"""What a source had and the lake never got is told after the source went down broker by broker, and
however long ago that was."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.failover.divergence import divergence_of
from mirrorlake.lake.definitions import rows_of
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


def replaced(kind: str, **more: object) -> dict[str, object]:
    """An incident about a log of the source that another one has replaced."""
    where = {"flow": FLOW, "kind": kind, "topic": "orders", "at": ago(300), "detail": "replaced"}
    return {**where, "generation": 0, **more}


AGAIN, BACK = replaced("topic_recreated"), replaced("source_rewound", partition=0, first_offset=60)
STOPPED = {"resolved_at": ago(200), "resolution": "stop"}
DECIDED = {"resolved_at": ago(200), "resolution": "new-generation"}


@pytest.mark.parametrize(
    ("incident", "first"),
    [
        (AGAIN, 0),
        ({**AGAIN, **DECIDED}, None),
        ({**AGAIN, "topic": "payments"}, None),
        (BACK, 60),
        ({**BACK, "first_offset": 70}, None),
        *(
            pytest.param(
                *case, marks=pytest.mark.wide("test_of_a_log_that_took_the_place_of_the_staged_one")
            )
            for case in (
                ({**AGAIN, **STOPPED}, 0),
                ({**AGAIN, "flow": "east->north"}, 0),
                ({**AGAIN, "flow": "north->west"}, None),
                ({**BACK, **STOPPED}, 60),
                ({**BACK, **DECIDED}, None),
                ({**BACK, "partition": 1}, None),
            )
        ),
    ],
)
def test_of_a_log_that_took_the_place_of_the_staged_one(
    lake: Lake, incident: dict[str, object], first: int | None
) -> None:
    """It ends in front of where the stage ends, and none of it is staged."""
    append(lake, "positions", [sample(60, 100, 70, staged_end=100)])
    append(lake, "incidents", [incident])
    assert told(lake) == ([] if first is None else [(0, first, 69)])


def test_not_of_one_whose_generation_has_begun_since(lake: Lake) -> None:
    append(lake, "positions", [sample(60, 70, 70, staged_end=70, generation=1)])
    append(lake, "incidents", [{**BACK, **STOPPED}])
    assert told(lake) == [(0, 60, 69)]
    begun: dict[str, object] = {"source_cluster": "east", "topic": "orders", "partition": 0}
    begun |= {"generation": 1, "first_offset": 60, "topic_id": "", "started_at": ago(100)}
    lake.append("generations", rows_of("generations", [begun]))
    assert told(lake) == []


def test_as_of_when_that_is(lake: Lake) -> None:
    """Nothing is known of the source of a flow whose first run was killed before its first
    sample."""
    append(lake, "positions", [sample(60, 80, 100, flow="west->east")])
    assert divergence_of(lake.now, FLOW)["sampled_at"] is None
    append(lake, "positions", [sample(since, 100, 100) for since in (9_000.0, 6_000.0)])
    seen = divergence_of(lake.now, FLOW)
    assert seen["never_staged"] == []
    assert abs((seen["sampled_at"] - ago(6_000)).total_seconds()) < 60
