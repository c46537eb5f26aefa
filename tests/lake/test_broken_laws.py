"""What `status` says of laws that are broken, whatever their age, and where it cannot know."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.run.status import read_status
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    commit,
    opened,
    run_row,
    sample,
    staged,
    write_file,
)

DAYS = 5 * 86_400


def test_a_hole_in_the_map_is_told_whatever_its_age(spark: SparkSession, tmp_path: Path) -> None:
    lake, topology = opened(spark, write_file(tmp_path))
    for offsets in (range(10), range(11, 20), range(20, 40), range(40, 60)):  # 10 is a marker
        commit(lake, "records", staged(offsets, DAYS))
    commit(
        lake,
        "records",
        staged(range(10), DAYS, partition=1) + staged(range(10), DAYS, topic="other"),
    )
    append(lake, "offset_map", [run_row(0, 9, DAYS), run_row(11, 24, DAYS), run_row(30, 49, DAYS)])
    append(lake, "positions", [sample(5, 50, 60)])
    assert gaps(lake, Connections(topology)) == [(0, 5.0, "between offsets 0 and 39")], (
        "50 to 59 are not overtaken yet"
    )
    append(lake, "incidents", [given_up(25, 29)])
    assert gaps(lake, Connections(topology)) == []


@pytest.mark.wide("test_a_hole_in_the_map_is_told_whatever_its_age")
def test_what_was_given_up_hides_no_hole(spark: SparkSession, tmp_path: Path) -> None:
    """Of the offsets that were given up some are no records: others that are missing do not make
    up for them, nor do decisions about the same offsets."""
    lake, topology = opened(spark, write_file(tmp_path))
    commit(lake, "records", staged((*range(25), 28, *range(30, 40)), DAYS))  # of 25 to 29 only 28
    commit(lake, "records", staged(range(40, 60), DAYS))
    append(lake, "offset_map", [run_row(0, 19, DAYS), run_row(30, 49, DAYS)])
    append(lake, "positions", [sample(5, 50, 60)])
    append(lake, "incidents", [given_up(22, 29), given_up(24, 29)])
    assert gaps(lake, Connections(topology)) == [(0, 2.0, "between offsets 0 and 39")], (
        "20 and 21 were not given up"
    )


def given_up(first: int, last: int) -> dict[str, object]:
    return {
        "flow": FLOW,
        "at": ago(9),
        "kind": "target_refused",
        "topic": "orders",
        "partition": 0,
        "first_offset": first,
        "last_offset": last,
        "resolved_at": ago(1),
        "resolution": "skip",
    }


@pytest.mark.wide("test_a_hole_in_the_map_is_told_whatever_its_age")
def test_generations_and_retention_make_no_hole(spark: SparkSession, tmp_path: Path) -> None:
    lake, topology = opened(spark, write_file(tmp_path))
    # what was before has been deleted by retention
    commit(lake, "records", staged(range(5, 20), DAYS))
    commit(lake, "records", staged(range(10), DAYS, generation=1))
    append(lake, "offset_map", [run_row(0, 19, DAYS), run_row(0, 9, DAYS, generation=1)])
    again = [
        run_row(3, 19, DAYS, target_generation=1),
        run_row(0, 9, DAYS, generation=1, target_generation=1),
    ]
    # the target topic was made again, and filled from the stage as it was then
    append(lake, "offset_map", again)
    assert gaps(lake, Connections(topology)) == []
    commit(lake, "records", staged(range(20, 23), DAYS))
    found = gaps(lake, Connections(topology))
    assert found == [(0, 3.0, "between offsets 5 and 22")], (
        "the older generation of the source topic ended without them"
    )


@pytest.mark.wide("test_a_hole_in_the_map_is_told_whatever_its_age")
def test_what_is_parked_or_forgotten_hides_no_hole(spark: SparkSession, tmp_path: Path) -> None:
    """Forgotten records are in the map and not in the stage: others that are missing do not make up
    for them."""
    lake, topology = opened(spark, write_file(tmp_path))
    for offsets in (range(20), (*range(20, 25), *range(30, 40)), range(40, 60)):
        commit(lake, "records", staged(offsets, DAYS))
    append(lake, "offset_map", [run_row(0, 9, DAYS), run_row(11, 35, DAYS), run_row(37, 49, DAYS)])
    append(lake, "positions", [sample(5, 50, 60)])
    place = {"topic": "orders", "partition": 0, "generation": 0}
    gone = {
        "source_cluster": "east",
        **place,
        "first_offset": 25,
        "last_offset": 29,
        "record_count": 5,
    }
    lake.append("forgotten", rows_of("forgotten", [{**gone, "forget_id": "a", "noted_at": ago(9)}]))
    assert gaps(lake, Connections(topology)) == [(0, 2.0, "between offsets 0 and 39")]
    refused = {
        "flow": FLOW,
        **place,
        "target_topic": "east.orders",
        "target_generation": 0,
        "parked_at": ago(9),
    }
    lake.append("parked", rows_of("parked", [{**refused, "offset": offset} for offset in (10, 36)]))
    assert gaps(lake, Connections(topology)) == []


def gaps(lake: Lake, connections: Connections) -> list[tuple[int, float, str]]:
    """The map's holes, as `status` tells them; no cluster answers meanwhile, which it says."""
    lake.reader.refresh()
    status = read_status(lake.reader, connections)
    (unchecked,) = status[
        "unchecked"
    ]  # how it goes on depends on who gives up first, this process or the client
    assert unchecked.startswith(
        f"what the target of flow {FLOW} holds was not checked: cluster west does not answer"
    )
    rows = [row for row in status["alerts"] if row["alert"] == "map_gap"]
    assert status["healthy"] == (not rows)
    return [
        (
            row["partition"],
            row["value"],
            re.findall(r"between offsets \d+ and \d+", row["detail"])[0],
        )
        for row in rows
    ]
