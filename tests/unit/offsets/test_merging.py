"""Small files become one only where whoever reads the stage's files one after another still gets
offsets in order."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.merging import mergeable
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.stage_index import StageIndex

#: A file's (topic, first offset, last offset).
Ranges = Sequence[tuple[str, int, int]]


def _index(files: Sequence[Ranges]) -> StageIndex:
    index = StageIndex()
    held = (
        (
            f"f{at}",
            [
                StagedRange("east", topic, 0, 0, first, last, last - first + 1)
                for topic, first, last in ranges
            ],
        )
        for at, ranges in enumerate(files)
    )
    index.apply(held, (), 0)
    return index


def _chosen(files: Sequence[Ranges], small: Sequence[int], max_bytes: int = 100) -> list[str]:
    return mergeable(_index(files), {f"f{at}": 1 for at in small}, max_bytes)


BURST = [
    [("t", 0, 1)],
    [("t", 2, 3)],
    [("t", 4, 999)],
    [("t", 1_000, 1_001)],
    [("t", 1_002, 1_003)],
]


def test_a_large_file_lies_between() -> None:
    assert _chosen(BURST, [0, 1, 3, 4]) == ["f0", "f1"]
    assert _chosen(BURST, [0, 3, 4]) == ["f3", "f4"], (
        "one that has nobody to go with stands in nobody's way"
    )
    assert _chosen(BURST, [0, 3]) == []


def test_markers_of_transactions_are_no_file() -> None:
    assert _chosen([[("t", 0, 1)], [("t", 3, 4)], [("t", 6, 7)]], [0, 1, 2]) == ["f0", "f1", "f2"]


def test_other_topics_go_on() -> None:
    files = [*BURST, [("quiet", 0, 1)], [("quiet", 2, 3)]]
    assert _chosen(files, [0, 3, 5, 6]) == ["f0", "f5", "f6"]


def test_no_more_bytes_than_are_put_in_order_at_once() -> None:
    assert _chosen([[("t", at, at)] for at in range(5)], range(5), max_bytes=3) == [
        "f0",
        "f1",
        "f2",
    ]
    files = _index([[("t", at, at)] for at in range(4)])
    assert mergeable(files, {"f0": 1, "f1": 1, "f2": 2, "f3": 1}, 3) == ["f0", "f1"], (
        "none behind one that is left out"
    )


def test_a_merged_file_came_late_and_lies_between() -> None:
    """Which goes with neither: it has a topic in which something else is between."""
    files = [[("t", 0, 0), ("u", 0, 0)], [("t", 2, 2)], [("u", 1, 1)], [("t", 1, 1), ("u", 2, 2)]]
    assert _chosen(files, [0, 1, 3]) == ["f1", "f3"]


@st.composite
def _stages(draw: st.DrawFn) -> tuple[list[Ranges], list[int]]:
    """Files that came in any order, each with the next offsets of some topics."""
    ends = dict.fromkeys("abc", 0)
    files: list[Ranges] = []
    for _ in range(draw(st.integers(2, 12))):
        held = []
        for topic in draw(st.sets(st.sampled_from("abc"), min_size=1)):
            first = ends[topic] + draw(st.integers(0, 1))
            ends[topic] = first + draw(st.integers(1, 3))
            held.append((topic, first, ends[topic] - 1))
        files.append(held)
    files = draw(st.permutations(files))
    return files, sorted(draw(st.sets(st.integers(0, len(files) - 1))))


@given(_stages())
def test_what_becomes_one_has_nothing_of_others_between(
    stage: tuple[list[Ranges], list[int]],
) -> None:
    files, small = stage
    chosen = _chosen(files, small)
    assert len(chosen) != 1 and set(chosen) <= {f"f{at}" for at in small}
    for topic in "abc":
        held = sorted(
            (first, f"f{at}" in chosen)
            for at, ranges in enumerate(files)
            for t, first, _ in ranges
            if t == topic
        )
        mine = [at for at, (_, is_chosen) in enumerate(held) if is_chosen]
        assert not mine or mine == list(range(mine[0], mine[-1] + 1))
    if len(small) == len(files) > 1:
        assert len(chosen) == len(files), "where all are small, all become one"
