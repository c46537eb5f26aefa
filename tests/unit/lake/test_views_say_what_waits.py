"""What does not go on shows in the views that people look at, also where no sample tells of it."""

from pathlib import Path

import pytest

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.run.attention import standing
from tests.support.lake_rows import FLOW, ago, append, no_session, opened, sample, write_file


def a_lake(directory: Path) -> Lake:
    return opened(no_session, write_file(directory))[0]


def incident(lake: Lake, kind: str, flow: str = FLOW, **more: object) -> None:
    row = {"flow": flow, "at": ago(60), "kind": kind, "detail": "it waits", **more}
    lake.append("incidents", rows_of("incidents", [row]))


def test_a_flow_that_waits_since_it_began_is_no_flow_that_never_ran(tmp_path: Path) -> None:
    """Its target is away since the first start: nothing was sampled, nothing produced."""
    lake = a_lake(tmp_path)
    incident(lake, "flow_waits")
    (row,) = lake.ask_table("flow_status")
    assert (row["flow"], row["state"], row["open_incidents"]) == (FLOW, "incident", 1)
    assert standing(row) == "waiting for you"


@pytest.mark.parametrize("flow", ["*", "replay:1:east->west"])
def test_what_is_no_flow_has_no_row(tmp_path: Path, flow: str) -> None:
    lake = a_lake(tmp_path)
    incident(lake, "other_writer", flow)
    assert lake.ask_table("flow_status") == []


TOPIC_WAITS = ("topic_recreated", "target_recreated", "topic_refused", "source_refused")


@pytest.mark.parametrize("kind", TOPIC_WAITS)
def test_partitions_of_a_topic_that_waits_are_stopped(tmp_path: Path, kind: str) -> None:
    lake = a_lake(tmp_path)
    append(lake, "positions", [sample(5, 100, 100), sample(5, 100, 100, topic="paid")])
    incident(lake, kind, topic="orders")
    states = {row["topic"]: row["state"] for row in lake.ask_table("partition_status")}
    assert states == {"orders": "stopped", "paid": "at the end"}


@pytest.mark.parametrize(
    ("decided", "made_again", "state"),
    [
        ({"resolved_at": ago(5), "resolution": "stop"}, False, "stopped"),
        ({"resolved_at": ago(5), "resolution": "stop"}, True, "at the end"),
        ({"resolved_at": ago(5), "resolution": "again"}, False, "at the end"),
    ],
)
def test_a_topic_that_an_operator_stopped_is_so_until_it_is_made_again(
    tmp_path: Path, decided: dict[str, object], made_again: bool, state: str
) -> None:
    lake = a_lake(tmp_path)
    append(lake, "positions", [sample(5, 100, 100)])
    incident(lake, "target_recreated", topic="orders", target_generation=0, **decided)
    if made_again:
        row = {"flow": FLOW, "topic": "orders", "target_topic": "east.orders", "topic_id": "x"}
        row |= {"target_generation": 1, "started_at": ago(1), "begins": "stage"}
        lake.append("target_generations", rows_of("target_generations", [row]))
    assert [row["state"] for row in lake.ask_table("partition_status")] == [state]


@pytest.mark.parametrize(
    "decided",
    [
        {},
        pytest.param(
            {"resolved_at": ago(5), "resolution": "stop"},
            marks=pytest.mark.wide(
                "test_a_partition_is_stopped_by_what_waits_or_was_chosen_of_its_mirror_of_now"
            ),
        ),
    ],
)
@pytest.mark.parametrize(
    ("mirror", "state"),
    [
        ({}, "stopped"),
        ({"target_topic": "east.orders", "target_generation": 1}, "stopped"),
        ({"target_topic": "east.orders", "target_generation": 0}, "at the end"),
        ({"target_topic": "orders", "target_generation": 0}, "at the end"),
    ],
)
def test_a_partition_is_stopped_by_what_waits_or_was_chosen_of_its_mirror_of_now(
    tmp_path: Path, mirror: dict[str, object], state: str, decided: dict[str, object]
) -> None:
    """The topic was made again at the target, or the flow had another policy then."""
    lake = a_lake(tmp_path)
    append(lake, "positions", [sample(5, 100, 100)])
    incident(lake, "target_refused", topic="orders", partition=0, **decided, **mirror)
    row = {"flow": FLOW, "topic": "orders", "target_topic": "east.orders", "topic_id": "x"}
    row |= {"started_at": ago(90), "begins": "stage"}
    generations = [{**row, "target_generation": number} for number in (0, 1)]
    lake.append("target_generations", rows_of("target_generations", generations))
    assert [row["state"] for row in lake.ask_table("partition_status")] == [state]


@pytest.mark.parametrize(
    ("kind", "partition"),
    [("acls_left", None), ("control_configs", None), ("content_differs", 0), ("landing_gap", 0)],
)
def test_what_stops_nothing_stops_no_partition(
    tmp_path: Path, kind: str, partition: int | None
) -> None:
    lake = a_lake(tmp_path)
    append(lake, "positions", [sample(5, 100, 100)])
    incident(lake, kind, topic="orders", partition=partition)
    assert [row["state"] for row in lake.ask_table("partition_status")] == ["at the end"]
