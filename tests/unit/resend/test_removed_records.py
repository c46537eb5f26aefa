"""What a restore says that it does not bring: records that the stage has no more, or never had."""

import pytest

from mirrorlake.lake.retention import Removal
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.resend.note import ResentTopic
from mirrorlake.resend.removed import not_in_stage

#: (partition, generation, first offset, last one or the one behind the last).
Stretch = tuple[int, int, int, int]


def staged_range(partition: int, generation: int, first: int, last: int) -> StagedRange:
    return StagedRange("east", "t", partition, generation, first, last, last - first + 1)


@pytest.mark.parametrize(
    ("staged", "restored", "removed", "told"),
    [
        ([(0, 0, 10, 19)], [(0, 0, 10, 19)], [(0, 0, 0, 10)], "0 to 9 of partition 0"),
        # some of it was read again, or has not been deleted yet
        ([(0, 0, 4, 19)], [(0, 0, 4, 19)], [(0, 0, 0, 10)], "0 to 3 of partition 0"),
        ([(0, 0, 0, 19)], [(0, 0, 0, 19)], [(0, 0, 0, 10)], None),
        # as of a time of which the stage has nothing of a partition any more
        ([(0, 0, 0, 9), (1, 0, 50, 59)], [(0, 0, 0, 9)], [(1, 0, 0, 50)], "0 to 49 of partition 1"),
        ([(0, 0, 50, 59)], [], [(0, 0, 0, 50)], "0 to 49 of partition 0"),
        # of a topic that was made again
        ([(0, 1, 0, 9)], [(0, 1, 0, 9)], [(0, 0, 0, 50)], None),
        # of a partition whose log went back
        ([(0, 0, 5, 9), (0, 1, 8, 9)], [(0, 0, 5, 7), (0, 1, 8, 9)], [(0, 0, 0, 5)], "0 to 4 of"),
    ],
)
def test_what_lies_in_front_of_the_restored_records_is_told(
    staged: list[Stretch], restored: list[Stretch], removed: list[Stretch], told: str | None
) -> None:
    """It was left out without a word."""
    index = StageIndex()
    index.apply(((str(at), [staged_range(*one)]) for at, one in enumerate(staged)), (), 1)
    parts = [ResentTopic("t", "t", tuple(staged_range(*one) for one in restored))]
    removals = [Removal("east", "t", *one) for one in removed]
    removals.append(Removal("east", "another", 0, 0, 0, 10))
    found = not_in_stage(parts, removals, index.topics("east"))
    assert [line for line in found if told is None or told not in line] == []
    assert len(found) == (told is not None)
