"""What a restore takes of the stage: the newest generation that has records below the cut, and what
partitions of it had before they began one by themselves."""

import pytest

from mirrorlake.errors import InputError
from mirrorlake.offsets.generations import Begun
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.resend.cut import RestoredGenerations, ends_as_of, ends_of, ranges_below


def staged(*ranges: tuple[str, int, int, int, int]):  # type: ignore[no-untyped-def]
    """The stage of a cluster, each range (topic, partition, generation, first, last) in a file of
    its own."""
    index = StageIndex()
    files = [
        (str(at), [StagedRange("east", *item, item[4] - item[3] + 1)])
        for at, item in enumerate(ranges)
    ]
    index.apply(files, (), 1)
    return index.topics("east")


def taken(stage, begun=(), below=None, ends=None):  # type: ignore[no-untyped-def]
    ends = ends_of(stage, begun, below) if ends is None else ends
    found = ranges_below("east", stage, begun, ends)
    return {topic: [item[2:] for item in items] for topic, items in found.items()}


def test_all_of_it() -> None:
    stage = staged(("t", 0, 0, 0, 9), ("t", 0, 0, 12, 19), ("t", 1, 0, 5, 5), ("u", 0, 0, 0, 0))
    assert taken(stage) == {"t": [(0, 0, 0, 19, 18), (1, 0, 5, 5, 1)], "u": [(0, 0, 0, 0, 1)]}


def test_below_offsets() -> None:
    stage = staged(("t", 0, 0, 0, 9), ("t", 0, 0, 10, 19), ("t", 1, 0, 0, 9))
    assert taken(stage, below={("t", 0): 13}) == {"t": [(0, 0, 0, 12, 13), (1, 0, 0, 9, 10)]}
    assert taken(stage, below={("t", 0): 0, ("t", 1): 99}) == {"t": [(1, 0, 0, 9, 10)]}
    with pytest.raises(InputError, match="no records of t-2"):
        ends_of(stage, (), {("t", 2): 1})


def test_a_topic_that_was_made_again() -> None:
    begun = [Begun("t", 0), Begun("t", 1), Begun("u", 0)]
    stage = staged(("t", 0, 0, 0, 9), ("t", 1, 0, 0, 9), ("t", 0, 1, 0, 3))
    assert taken(stage, begun) == {"t": [(0, 1, 0, 3, 4)]}
    before = {("t", 0, 0): 10, ("t", 1, 0): 8, ("t", 0, 1): 0}
    assert taken(stage, begun, ends=before) == {"t": [(0, 0, 0, 9, 10), (1, 0, 0, 7, 8)]}
    assert taken(stage, begun, ends={}) == {"t": []}


def test_a_partition_whose_log_went_back() -> None:
    begun = [Begun("t", 0), Begun("t", 1, 0, 6)]
    stage = staged(("t", 0, 0, 0, 9), ("t", 0, 1, 6, 7), ("t", 1, 0, 0, 9))
    assert taken(stage, begun) == {"t": [(0, 0, 0, 5, 6), (0, 1, 6, 7, 2), (1, 0, 0, 9, 10)]}
    earlier = {("t", 0, 0): 9, ("t", 1, 0): 9}
    assert taken(stage, begun, ends=earlier) == {"t": [(0, 0, 0, 8, 9), (1, 0, 0, 8, 9)]}
    nothing_yet = staged(("t", 0, 0, 0, 9), ("t", 1, 0, 0, 9))
    assert taken(nothing_yet, begun) == {"t": [(0, 0, 0, 5, 6), (1, 0, 0, 9, 10)]}


def test_as_of_a_time() -> None:
    """A partition that had nothing yet is not there; one that began a generation by itself has the
    one before too."""
    begun = [Begun("t", 0), Begun("t", 1, 0, 6), Begun("t", 2, 0, 7)]
    stage = staged(("t", 0, 0, 0, 9), ("t", 0, 1, 6, 8), ("t", 0, 2, 7, 7), ("t", 1, 0, 0, 9))
    held = {("t", 0): (1, 8)}
    assert ends_as_of(stage, held) == {("t", 0, 0): 10, ("t", 0, 1): 8}
    assert taken(stage, begun, ends=ends_as_of(stage, held)) == {
        "t": [(0, 0, 0, 5, 6), (0, 1, 6, 7, 2)]
    }
    assert ends_as_of(stage, {("t", 1): (0, 99)}) == {("t", 1, 0): 10}


def test_positions_of_groups_are_of_a_generation() -> None:
    stage = staged(("t", 0, 0, 0, 9), ("t", 1, 1, 0, 9), ("u", 0, 0, 0, 0))
    ranges = [
        item
        for items in ranges_below("east", stage, (), ends_of(stage, ())).values()
        for item in items
    ]

    def place(
        *begun: Begun, key: TopicAndPartition = ("t", 0), generation: int | None = None
    ) -> int | None:
        return RestoredGenerations(ranges, begun).position(key, generation, 7)

    assert place(Begun("t", 0), Begun("u", 0)) == 7
    assert place(Begun("t", 1)) is None, (
        "an earlier version did not note the generation: it may be the later one"
    )
    assert place(Begun("t", 1), key=("t", 1)) == place(Begun("t", 1), key=("u", 0)) == 7
    assert place(Begun("t", 2, 1, 5)) == 7 and place(Begun("t", 2, 1, 5), key=("t", 1)) is None
    assert place(Begun("t", 1), generation=0) == 7, (
        "what is restored is of the generation that it is of"
    )
    assert place(Begun("t", 1), generation=1) is None
    assert place(Begun("t", 1), key=("t", 1), generation=0) == 0, (
        "nothing of the restored one was read"
    )
    assert place(Begun("t", 1, 1, 4), key=("t", 1), generation=0) == 4
    assert place(Begun("t", 1, 1, 9), key=("t", 1), generation=0) == 7, "the same log, up to there"
