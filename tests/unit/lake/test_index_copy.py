"""The copy of the index of the stage: what was written is what is read, and a damaged one is as
good as none."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.lake.index_copy import IndexCopy
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.stage_index import StageIndex

RANGES = st.builds(
    lambda cluster, topic, partition, generation, first, length: StagedRange(
        cluster, topic, partition, generation, first, first + length, length + 1
    ),
    st.sampled_from(["east", "west"]),
    st.sampled_from(["orders", "größe"]),
    st.integers(0, 2),
    st.integers(0, 1),
    st.integers(0, 2**60),
    st.integers(0, 100),
)


def made(files: list[list[StagedRange]]) -> StageIndex:
    index = StageIndex()
    index.apply([(f"file-{number}", ranges) for number, ranges in enumerate(files)], (), 7)
    return index


@given(st.lists(st.lists(RANGES, min_size=1, max_size=4), max_size=6), st.integers(0, 6))
def test_what_was_written_is_read(files: list[list[StagedRange]], gone: int) -> None:
    index = made(files)
    index.apply((), {f"file-{number}" for number in range(gone)}, 8)
    with TemporaryDirectory() as directory:
        copy = IndexCopy(Path(directory) / "index")
        copy.write(index)
        found = StageIndex()
        copy.fill(found)
    assert found.version == -1, "what it is a copy of is asked of the table"
    assert list(map(str, found.rows())) == list(map(str, index.rows()))
    for both in (index, found):  # and it goes on where the other one would
        both.apply(
            [("next", [StagedRange("east", "orders", 0, 1, 2**61, 2**61, 1)])], ["file-5"], 9
        )
    assert sorted(map(str, found.rows())) == sorted(map(str, index.rows()))
    assert [found.ends(name) for name in ("east", "west")] == [
        index.ends(name) for name in ("east", "west")
    ]


@pytest.mark.parametrize("kept", [0, 1, 100, 400, 700, -9, -200])
def test_a_damaged_copy_is_as_good_as_none(tmp_path: Path, kept: int) -> None:
    file = tmp_path / "index"
    IndexCopy(file).write(
        made([[StagedRange("east", "orders", 0, 0, at, at, 1)] for at in range(9)])
    )
    file.write_bytes(file.read_bytes()[:kept])
    found = StageIndex()
    IndexCopy(file).fill(found)
    assert not found.paths() and not list(found.rows())
