"""What a target has lost of many partitions is asked for, reported and taken out at once."""

from collections.abc import Collection
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.lake.decisions import Lost
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.lake import Lake
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.progress import Floor
from mirrorlake.run import target_losses
from mirrorlake.run.target_losses import MappedLoss, ends_below, loss_errors, take_out
from tests.support.lake_rows import FLOW, append, no_session, opened, run_row, write_file

AT = datetime(2026, 11, 23, tzinfo=timezone.utc)
COUNT, KEPT, PARTITIONS = 10, 6, 4
#: Those of which something is lost, and what the map has of each.
LOST = [("orders", 1), ("orders", 3)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake in which ten records of each of four partitions are mapped, offset by offset."""
    lake = opened(no_session, write_file(tmp_path))[0]
    rows = [run_row(0, COUNT - 1) for _ in range(PARTITIONS)]
    append(
        lake,
        "offset_map",
        [row | {"partition": n, "target_partition": n} for n, row in enumerate(rows)],
    )
    return lake


def asking(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what the lake is asked, and of what is changed in it."""
    names, ask, change = list[str](), lake.ask, lake.change

    def noted(way: Any) -> Any:
        def call(name: str, *given: Any, **of: Any) -> Any:
            names.append(name)
            return way(name, *given, **of)

        return call

    monkeypatch.setattr(lake, "ask", noted(ask))
    monkeypatch.setattr(lake, "change", noted(change))
    return names


def mapped(lake: Lake) -> dict[TopicAndPartition, int]:
    """How many records of each partition the map has."""
    return {
        (row["topic"], row["partition"]): row["record_count"]
        for row in lake.ask_table("offset_map")
    }


def test_losses_are_one_question(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asking(lake, monkeypatch)
    losses = {key: MappedLoss("east.orders", Lost(0, KEPT)) for key in LOST}
    losses["orders", 2] = MappedLoss("east.orders", Lost(0, KEPT), written=(0, 12))
    losses["orders", 9] = MappedLoss("east.orders", Lost(0, 0))
    errors = loss_errors(lake, FLOW, losses)
    assert asked == ["lost_of_map"]
    assert [(error.partition, error.first_offset, error.last_offset) for error in errors] == [
        (1, KEPT, COUNT - 1),
        (3, KEPT, COUNT - 1),
        (2, KEPT, 12),
        (9, None, None),
    ]
    assert f"{COUNT - KEPT} records of orders-1" in str(errors[0])


def test_what_is_lost_leaves_map_and_proofs_in_one_change(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof: dict[str, Any] = {"flow": FLOW, "topic": "orders", "generation": 0, "verdict": "proven"}
    proof |= {"first_offset": 0, "last_offset": COUNT - 1, "stage_count": COUNT}
    proof |= {"target_topic": "east.orders", "target_generation": 0, "audited_at": AT}
    rows = [proof | {"partition": number} for number in range(PARTITIONS)]
    lake.append("audits", rows_of("audits", rows))
    floors = {("orders", number): Floor(COUNT, COUNT) for number in range(PARTITIONS)}
    set_back = list[object]()
    producer: Any = SimpleNamespace(
        floors=lambda: floors,
        spec=SimpleNamespace(name=FLOW, remote_topic=lambda topic: f"east.{topic}"),
        set_back=set_back.append,
    )
    asked = asking(lake, monkeypatch)
    lost = dict.fromkeys(LOST, Lost(0, KEPT)) | {("orders", 0): Lost(0, COUNT)}
    assert take_out(lake, producer, lost)
    assert asked == ["lost_of_map", "proven_ranges", "cut_map"]
    assert set_back == [{("east.orders", 1): 0, ("east.orders", 3): 0}]
    assert mapped(lake) == {key: KEPT if key in LOST else COUNT for key in floors}, (
        "and nothing of the others"
    )
    (status,) = lake.ask_table("proof_status")
    assert status["proven_records"] == PARTITIONS * COUNT - len(LOST) * (COUNT - KEPT)
    assert not take_out(lake, producer, {("orders", 0): Lost(0, COUNT)}) and len(asked) == 3


def test_an_end_that_comes_up_again_is_waited_for_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A leader that was just elected hears somewhat later how far its log is known to reach."""
    monkeypatch.setattr(target_losses, "_LOOK_SECONDS", 0.0)
    asked: list[set[TopicAndPartition]] = []

    def ends(places: Collection[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        asked.append(set(places))
        return dict.fromkeys(places, 4 if len(asked) < 3 else 9)

    slow, whole = LOST
    assert ends_below(ends, {slow: 9, whole: 4}) == {}
    assert asked == [{slow, whole}, {slow}, {slow}]
