"""The judgement on positions of groups in chaos sees what is wrong, and only that."""

from collections.abc import Sequence

import pytest

from tests.chaos.groups import Seen, wrong_positions

#: Records at source offsets 0, 1, 3, 4: a marker lies between them.
PAIRS = [(0, 0), (1, 1), (3, 2), (4, 3)]


def judged(committed: Sequence[int], seen: Sequence[int]) -> list[str]:
    """Each commit is at its own second, and the target is looked at half a second after it."""
    return list(
        wrong_positions(
            [Seen(at, position) for at, position in enumerate(committed)],
            [Seen(at + 0.5, position) for at, position in enumerate(seen)],
            PAIRS,
        )
    )


@pytest.mark.parametrize(
    ("committed", "seen"),
    [([2, 5], [2, 4]), ([3, 5], [0, 4]), ([2], [2]), ([0], []), ([5, 5], [0, 4])],
    ids=["exact", "late, then exact", "at a marker", "nothing read", "late"],
)
def test_what_is_right(committed: Sequence[int], seen: Sequence[int]) -> None:
    assert judged(committed, seen) == []


@pytest.mark.parametrize(
    ("committed", "seen", "what"),
    [
        ([2, 5], [3, 4], "behind source offset 3, and the group had read up to 2 only"),
        ([5, 5], [4, 3], "moved back from 4 to 3"),
        ([2, 5], [2, 2], "the position 2 at the end makes it read 2 records again"),
        ([5], [], "the position 0 at the end makes it read 4 records again"),
    ],
    ids=["past unread records", "backwards", "late at the end", "never moved"],
)
def test_what_is_wrong(committed: Sequence[int], seen: Sequence[int], what: str) -> None:
    (told,) = judged(committed, seen)
    assert what in told
