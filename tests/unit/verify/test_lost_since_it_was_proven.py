"""What was proven is proven no more once the target's log ends in front of it, and a target that
does not say where its log ends is named: else the answer would be that nothing differs."""

from pathlib import Path
from typing import Any

import pytest

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.run import target_losses
from mirrorlake.verify import auditor
from mirrorlake.verify.coverage import find_not_compared
from mirrorlake.verify.plan import Choice, choose
from mirrorlake.verify.scope import FlowScope
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    no_session,
    opened,
    run_row,
    staged,
    write_file,
)
from tests.support.verify_scopes import scope_of

MIRROR = ("east.orders", 0)


def audit(first: int, last: int, verdict: str = "proven") -> dict[str, Any]:
    row: dict[str, Any] = {"flow": FLOW, "topic": "orders", "partition": 0, "generation": 0}
    row |= {"first_offset": first, "last_offset": last, "stage_count": last - first + 1}
    row |= {"target_topic": "east.orders", "target_generation": 0, "target_last_offset": last}
    return row | {"verdict": verdict, "audited_at": ago(60)}


def scope_with(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    ends: list[int | None],
    audits: list[dict[str, Any]],
) -> FlowScope:
    """A flow that has brought twenty records, by what its target's log says of its end, one answer
    after the other: None is none."""
    monkeypatch.setattr(target_losses, "SURE_SECONDS", 0.2)
    monkeypatch.setattr(target_losses, "_LOOK_SECONDS", 0.1)
    lake, topology = opened(no_session, write_file(directory))
    append(lake, "records", staged(range(20)))
    append(lake, "offset_map", [run_row(0, 19)])
    lake.append("audits", rows_of("audits", audits))
    monkeypatch.setattr("mirrorlake.verify.target_side.target_positions", lambda *_: {})
    real = scope_of.__globals__["MemoryCluster"].end_offsets

    def end_offsets(cluster: Any, places: Any, *how: Any, **named: Any) -> Any:
        answer: dict[TopicAndPartition, int] = real(cluster, places, *how, **named)
        if MIRROR not in answer or cluster.alias != "west":
            return answer
        end = ends.pop(0) if len(ends) > 1 else ends[0]
        return {key: end for key in answer if end is not None}

    monkeypatch.setattr("mirrorlake.testing.MemoryCluster.end_offsets", end_offsets)
    return scope_of(lake, topology, monkeypatch)


@pytest.mark.parametrize(
    ("ends", "again", "before"),
    [
        ([20], [], 20),
        ([19], [(10, 19)], 10),
        ([10], [(10, 19)], 10),
        ([9], [(0, 19)], 0),
        ([12, 12, 20], [], 20),
        ([12, None], [], 20),
    ],
    ids=["all", "one", "a range", "more", "a leader that was just elected", "one that is silent"],
)
def test_it_is_compared_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ends: list[int | None],
    again: list[tuple[int, int]],
    before: int,
) -> None:
    scope = scope_with(tmp_path, monkeypatch, ends, [audit(0, 9), audit(10, 19)])
    with StageFiles(scope.deployment.lake.reader).reading() as index:
        partitions = scope.partitions(index)
    chosen = choose(scope, partitions, Choice())
    assert [extent for one in chosen for extent in one.extents] == again
    assert auditor._proven_before(partitions, chosen) == before


def test_what_differs_is_compared_by_watch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = scope_with(tmp_path, monkeypatch, [5], [audit(0, 19, "missing_at_target")])
    with StageFiles(scope.deployment.lake.reader).reading() as index:
        partitions = scope.partitions(index)
    assert choose(scope, partitions, Choice(differing=False)) == []


@pytest.mark.parametrize("end", [20, None])
def test_a_target_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: int | None
) -> None:
    scope = scope_with(tmp_path, monkeypatch, [end], [audit(0, 19)])
    with StageFiles(scope.deployment.lake.reader).reading() as index:
        partitions = scope.partitions(index)
        held, free = find_not_compared(scope, partitions, index, Choice().bounds)
    assert choose(scope, partitions, Choice()) == []
    named = [(one.topic, one.partition, one.first, one.last, one.reason) for one in held]
    assert free == [] and named == ([("orders", 0, 20, None, "no_answer")] if end is None else [])
    assert all(one.detail == "no leader of east.orders-0 says what the target has" for one in held)
