"""Offset syncs of what was mapped: of the newest generation, in order, the first pair where a
reader may have none."""

from mirrorlake.mm2.formats import OffsetSync
from mirrorlake.run.offset_syncs import syncs_of


def row(partition: int, generation: int, *pairs: int) -> dict[str, object]:
    names = ("source_first", "target_first", "source_last", "target_last")
    return {
        "topic": "t",
        "partition": partition,
        "generation": generation,
        **dict(zip(names, pairs, strict=True)),
    }


def test_the_first_and_the_last_pair_of_the_newest_generation() -> None:
    rows = [
        row(1, 0, 0, 0, 99, 101),
        row(0, 0, 0, 0, 9, 9),
        row(0, 1, 0, 11, 5, 16),
        row(2, 0, 7, 8, 7, 8),
    ]
    lasts = [OffsetSync("t", 0, 5, 16), OffsetSync("t", 1, 99, 101), OffsetSync("t", 2, 7, 8)]
    assert syncs_of(rows, firsts=False) == lasts
    assert syncs_of(rows, firsts=True) == [
        OffsetSync("t", 0, 0, 11), lasts[0], OffsetSync("t", 1, 0, 0), lasts[1], lasts[2]
    ]  # fmt: skip
