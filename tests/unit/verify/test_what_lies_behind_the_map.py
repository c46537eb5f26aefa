"""What a log of the target holds behind the end of the map is named where the target does not know
how far the flow is; what a sample proves is compared, and nothing is on its way for ever."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.kafka.values import Row
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.verify import coverage, in_flight
from mirrorlake.verify.coverage import find_not_compared
from mirrorlake.verify.in_flight import TargetPosition, not_on_the_way
from mirrorlake.verify.not_compared import NotCompared, on_its_way
from mirrorlake.verify.plan import Choice
from mirrorlake.verify.scope import FlowScope
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    opened,
    record_row,
    run_row,
    sample,
    staged,
    write_file,
)
from tests.support.verify_scopes import scope_of

MIRROR = ("east.orders", 0)
STRANGE = record_row("north->west", ("orders", 0, 0), 0, "east.orders", 900)


#: `make test` has the first four.
CASES: list[Any] = [
    ({}, 15, [], {}, True),
    ({"delivery": "exactly_once"}, 15, [], {}, True),
    ({}, 14, [], {}, True),
    ({}, None, [], {}, False),
    ({}, 20, [], {}, False),
    ({}, 15, [STRANGE], {}, False),
    ({"provenance": "headers"}, 15, [], {}, False),
    ({}, 15, [], {MIRROR: TargetPosition(14, 0, 0, ())}, False),
]


@pytest.mark.parametrize(
    ("settings", "first", "rows", "known", "is_named"),
    [
        *CASES[:4],
        *(pytest.param(*case, marks=pytest.mark.wide("test_it_is_named")) for case in CASES[4:]),
    ],
    ids=[
        *("a record", "one without a position", "one at the end of the map", "markers alone"),
        "a record that came since",
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
    monkeypatch.setattr("mirrorlake.verify.target_side.target_positions", lambda *_: known)
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
    at_once = settings.get("delivery") == "exactly_once"  # what it writes has a position
    named, none = (held, free) if at_once else (free, held)
    assert none == []
    found = [(one.first, one.last, on_its_way(one, runs=False).reason) for one in named]
    assert found == ([(14, None, "no_answer")] if is_named else [])
    if is_named:
        assert f"what east.orders-0 has from its offset {first} on" in named[0].detail


#: `make test` has the first five.
SAMPLES: list[Any] = [
    ("at_least_once", {}, {}, 18, 19),
    ("exactly_once", {}, {}, 18, 19),
    ("exactly_once", {}, {"target_passed_end": 30}, 18, 20),
    ("exactly_once", {}, {"target_passed_end": None}, 14, 14),
    ("exactly_once", {}, {"mapped_end": 15}, 14, 14),
    ("exactly_once", {}, {"generation": 1}, 14, 14),
    ("exactly_once", {}, {"generation": None}, 14, 14),
    ("exactly_once", {}, {"target_generation": 1}, 14, 14),
    ("exactly_once", {}, {"target_topic": "orders"}, 14, 14),
    ("exactly_once", {MIRROR: TargetPosition(16, 0, 0, ())}, {}, 16, 20),
]


@pytest.mark.parametrize(
    ("delivery", "known", "sampled", "end", "target_end"),
    [
        *SAMPLES[:5],
        *(
            pytest.param(*case, marks=pytest.mark.wide("test_what_a_sample_proves_is_compared"))
            for case in SAMPLES[5:]
        ),
    ],
    ids=[
        *("at least once", "a forgotten position", "an end that is not there", "not all sent"),
        *("a map that has not come to it", "a later generation", "an unknown one"),
        *("a later one of the target", "another target topic", "a position"),
    ],
)
def test_what_a_sample_proves_is_compared(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    delivery: str,
    known: Mapping[TopicAndPartition, TargetPosition],
    sampled: Mapping[str, Any],
    end: int,
    target_end: int,
) -> None:
    """The flow has passed offset 17, and by the sample all in front of the target's offset 19 that
    is its own is mapped, while the target does not know its position any more: it rests for weeks,
    and what it has never mapped was taken for records on their way."""
    lake, topology = opened(no_session, write_file(tmp_path, flows={FLOW: {"delivery": delivery}}))
    append(lake, "records", staged(range(18)))
    append(lake, "offset_map", [run_row(0, 13)])
    ends = {"target_passed_end": 19, "mapped_end": 14, "generation": 0, "target_generation": 0}
    append(lake, "positions", [sample(30 * 86400, 18, 20, **{**ends, **sampled})])
    monkeypatch.setattr("mirrorlake.verify.target_side.target_positions", lambda *_: known)
    scope = scope_of(lake, topology, monkeypatch)
    rows = {("east.orders", 0): Row(19, 0, None, b"v")}
    monkeypatch.setattr(
        coverage,
        "_first_rows",
        lambda _, alias, asked: {key: rows[key] for key in asked.keys() & rows.keys()},
    )
    with StageFiles(lake.reader).reading() as index:
        (one,) = partitions = scope.partitions(index)
        held, free = find_not_compared(scope, partitions, index, Choice().bounds)
    assert (one.first, one.end, one.target_end) == (0, end, target_end)
    waiting = [(stretch.first, stretch.last) for stretch in [*held, *free]]
    beyond = {(end, None)} if not known and target_end < 20 else set()
    assert {*waiting} == beyond | ({(end, 17)} if end < 18 else set())


@pytest.mark.parametrize(
    ("reason", "sampled", "mapped", "held"),
    [
        ("not_mapped", {}, 13, None),
        ("not_mapped", {"stalled_since": 300}, 13, None),
        ("not_mapped", {"stalled_since": 700}, 13, "the flow is running, and has not moved"),
        ("not_staged", {"source_end": None}, 13, "the flow is running, and does not read the part"),
        ("no_answer", {}, 13, "unknown"),
        ("no_answer", {}, 14, None),
    ],
    ids=[
        *("it moves", "it has just stopped", "it stands still", "it does not read the partition"),
        *("the map does not come", "the map comes"),
    ],
)
def test_what_is_not_on_its_way_while_the_flow_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
    sampled: Mapping[str, int | None],
    mapped: int,
    held: str | None,
) -> None:
    monkeypatch.setattr(in_flight, "MAP_SECONDS", 0.0)
    lake, _ = opened(no_session, write_file(tmp_path))
    append(lake, "offset_map", [run_row(0, mapped)])
    # seconds become a time here: the parameters are as old as the whole run of tests
    now = {name: seconds and ago(seconds) for name, seconds in sampled.items()}
    append(lake, "positions", [sample(1, 14, 20, **{"generation": 0, **now})])
    stretch = NotCompared("orders", 0, 0, 14, None, reason, detail="unknown")
    found = not_on_the_way(lake, FLOW, [stretch], 600)
    assert [*found] == ([] if held is None else [stretch])
    told = on_its_way(stretch, runs=True, held=found.get(stretch))
    assert told.reason == ("in_flight" if held is None else reason)
    assert held is None or told.detail.startswith(held)
