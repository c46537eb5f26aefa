"""What tasks say that they have read, against what was planned."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.landing.ranges import shared_out
from mirrorlake.landing.receipts import receipt, stretches_in_words, unread
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges

KEYS = st.tuples(st.sampled_from(["größe", "b.c"]), st.integers(0, 3))
RANGES = st.dictionaries(
    KEYS, st.tuples(st.integers(0, 99), st.integers(1, 60_000)).map(lambda at: (at[0], sum(at)))
)


@given(RANGES, st.integers(1, 6), st.data())
def test_what_no_task_has_read_is_missing_whatever_ran_twice(
    planned: dict[TopicAndPartition, tuple[int, int]], tasks: int, data: st.DataObject
) -> None:
    parts = shared_out(planned, tasks)
    ran = data.draw(st.lists(st.sampled_from(range(len(parts))))) if parts else []
    left = unread(planned, [receipt(parts[number]) for number in ran])
    expected: dict[TopicAndPartition, list[tuple[int, int]]] = {}
    for number, part in enumerate(parts):
        if number not in ran:
            for key, (first, end) in part.items():
                expected.setdefault(key, []).append((first, end - 1))
    assert {key: list(OffsetRanges(some)) for key, some in left.items()} == {
        key: _joined(some) for key, some in expected.items()
    }


def _joined(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbours as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(stretches):
        if joined and first == joined[-1][1] + 1:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return joined


def test_a_sentence_names_some() -> None:
    stretches = {("t", number): [(0, 9), (1_000, 1_000)] for number in range(3)}
    assert stretches_in_words(stretches) == (
        "t-0 0 to 9, t-0 1,000 to 1,000, t-1 0 to 9, t-1 1,000 to 1,000, t-2 0 to 9 and 1 "
        "stretches more"
    )
