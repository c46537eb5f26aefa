"""What a log of the target holds behind the end of the map is named where the target does not know
how far the flow is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.kafka.values import Row
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.verify import coverage
from mirrorlake.verify.coverage import find_not_compared
from mirrorlake.verify.in_flight import TargetPosition
from mirrorlake.verify.not_compared import on_its_way
from mirrorlake.verify.plan import Choice
from mirrorlake.verify.scope import FlowScope
from tests.support.lake_rows import (
    FLOW,
    append,
    no_session,
    opened,
    record_row,
    run_row,
    staged,
    write_file,
)
from tests.support.verify_scopes import scope_of

MIRROR = ("east.orders", 0)
STRANGE = record_row("north->west", ("orders", 0, 0), 0, "east.orders", 900)


@pytest.mark.parametrize(
    ("settings", "first", "rows", "known", "is_named"),
    [
        ({}, 15, [], {}, True),
        ({}, 14, [], {}, True),
        ({}, None, [], {}, False),
        ({}, 20, [], {}, False),
        ({}, 15, [STRANGE], {}, False),
        ({"provenance": "headers"}, 15, [], {}, False),
        ({}, 15, [], {MIRROR: TargetPosition(14, 0, 0, ())}, False),
    ],
    ids=[
        *("a record", "one at the end of the map", "markers alone", "a record that came since"),
        *("another flow's topic", "records of others are expected", "the position is known"),
    ],
)
def test_it_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: Mapping[str, Any],
    first: int | None,
    rows: list[dict[str, Any]],
    known: Mapping[TopicAndPartition, TargetPosition],
    is_named: bool,
) -> None:
    """The map ends at offset 14 of a log of 20, and `first` is the first record from there on."""
    file = write_file(tmp_path, flows={FLOW: {"delivery": "at_least_once", **settings}})
    lake, topology = opened(no_session, file)
    append(lake, "records", staged(range(14)))
    append(lake, "offset_map", [run_row(0, 13)])
    if rows:
        append(lake, "offset_map", rows)
    monkeypatch.setattr("mirrorlake.verify.scope.target_positions", lambda *_: known)
    scope: FlowScope = scope_of(lake, topology, monkeypatch)

    def first_rows(_: object, alias: str, asked: Mapping[TopicAndPartition, int]) -> Any:
        if alias == "east" or first is None:
            return {}
        assert not asked or asked == {MIRROR: 14}
        return {key: Row(first, 0, None, b"v") for key in asked}

    monkeypatch.setattr(coverage, "_first_rows", first_rows)
    with StageFiles(lake.reader).reading() as index:
        partitions = scope.partitions(index)
        held, free = find_not_compared(scope, partitions, index, Choice().bounds)
    assert held == []
    found = [(one.first, one.last, on_its_way(one, runs=False).reason) for one in free]
    assert found == ([(14, None, "no_answer")] if is_named else [])
    if is_named:
        assert f"what east.orders-0 has from its offset {first} on" in free[0].detail
        assert on_its_way(free[0], runs=True).reason == "in_flight"
