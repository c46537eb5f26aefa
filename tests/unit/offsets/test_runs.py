"""Runs: any offsets become few rows and come back exactly, and what a target remembers is enough to
rebuild them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorlake.offsets.runs import (
    MAX_SEGMENTS,
    CommittedMetadata,
    Run,
    Segment,
    Written,
    add_written,
    decode_metadata,
    encode_metadata,
    rebuild,
    runs_of,
    segments_of,
    trim_written,
)

#: Steps between source offsets: ranges of equal ones, as markers make them, and any others.
STEPS = st.lists(
    st.one_of(
        st.integers(1, 5).map(lambda step: [step]),
        st.tuples(st.integers(1, 4), st.integers(1, 30)).map(lambda pair: [pair[0]] * pair[1]),
        st.integers(1, 10**9).map(lambda step: [step]),
    ),
    max_size=12,
).map(lambda lists: [step for steps in lists for step in steps])
FIRST = st.integers(0, 10**12)


@st.composite
def rising(draw: st.DrawFn, min_size: int = 0) -> list[int]:
    """Source offsets with every kind of gap."""
    steps = draw(STEPS.filter(lambda steps: len(steps) >= min_size))
    offsets, at = [], draw(FIRST)
    for step in steps:
        at += step
        offsets.append(at)
    return offsets


@st.composite
def transactions(draw: st.DrawFn) -> list[tuple[list[int], int]]:
    """Source offsets cut into transactions, each with the target offset of its first record."""
    offsets = draw(rising(1))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(offsets) - 1)), max_size=6)))
    target, found = draw(FIRST), []
    for start, end in zip([0, *cuts], [*cuts, len(offsets)], strict=True):
        if start < end:
            found.append((offsets[start:end], target))
            target += end - start + draw(st.sampled_from([0, 1, 1, 1, 7]))
    return found


def expand(segments: list[Segment] | tuple[Segment, ...]) -> list[tuple[int, int]]:
    return [
        (s.source_first + k * s.stride, s.target_first + k)
        for s in segments
        for k in range(s.record_count)
    ]


def pairs(parts: list[tuple[list[int], int]]) -> list[tuple[int, int]]:
    return [(offset, target + k) for offsets, target in parts for k, offset in enumerate(offsets)]


def segments(parts: list[tuple[list[int], int]]) -> list[Segment]:
    return [segment for offsets, target in parts for segment in segments_of(offsets, target)]


@given(rising(), FIRST)
def test_segments_expand_to_what_they_were_made_of(offsets: list[int], target: int) -> None:
    found = segments_of(offsets, target)
    assert expand(found) == [(offset, target + k) for k, offset in enumerate(offsets)]
    assert all(segment.record_count >= 1 and segment.stride >= 1 for segment in found)


@given(transactions(), st.integers(1, 5))
def test_runs_keep_every_pair_and_their_bounds(
    parts: list[tuple[list[int], int]], most: int
) -> None:
    runs = runs_of(segments(parts), most)
    assert [pair for run in runs for pair in expand(run.segments)] == pairs(parts)
    for run in runs:
        inside = expand(run.segments)
        assert len(run.segments) <= most
        assert (run.source_first, run.target_first) == inside[0]
        assert (run.source_last, run.target_last) == inside[-1]
        assert run.record_count == len(inside) == run.target_last - run.target_first + 1


@given(transactions())
def test_a_run_ends_only_where_target_offsets_do(parts: list[tuple[list[int], int]]) -> None:
    found = pairs(parts)
    breaks = sum(
        1 for (_, left), (_, right) in zip(found, found[1:], strict=False) if right != left + 1
    )
    assert len(runs_of(segments(parts))) == breaks + 1


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_regular_gaps_are_one_row_however_they_arrive(stride: int) -> None:
    offsets = list(range(0, 5_000 * stride, stride))
    parts = [segments_of(offsets[at : at + 500], at) for at in range(0, 5_000, 500)]
    assert runs_of(segment for part in parts for segment in part) == [
        Run((Segment(0, stride, 0, 5_000),))
    ]


@given(st.lists(st.integers(1, 50), min_size=1_000, max_size=1_500), FIRST)
@settings(max_examples=20)
def test_any_gaps_cost_at_most_one_row_per_thousand_records(steps: list[int], target: int) -> None:
    offsets = [sum(steps[: k + 1]) for k in range(len(steps))]
    assert len(runs_of(segments_of(offsets, target))) == 1
    assert MAX_SEGMENTS >= 1_000


@pytest.mark.parametrize(
    "offsets", [[1, 1], [2, 1], [1, 3, 3], [0, 2, 1], [5, 4, 6, 7], [0, 1, 1, 3]]
)
def test_offsets_that_do_not_rise_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="rise"):
        segments_of(offsets, 0)


WRITTEN = st.lists(
    st.builds(Written, st.integers(0, 2**62), st.integers(0, 2**62), st.integers(1, 2**40)),
    max_size=20,
)


NUMBERS = st.integers(0, 9)
IDS = st.sampled_from(["", "zUf7-GCUTkmm_Spf1OqQhA", "zUf7-GCUTkmm_Spf1OqQhA@1795925426000"])


@given(
    st.builds(CommittedMetadata, NUMBERS, NUMBERS, WRITTEN.map(tuple), source_id=IDS, target_id=IDS)
)
def test_metadata_reads_back(metadata: CommittedMetadata) -> None:
    assert decode_metadata(encode_metadata(metadata)) == metadata


@pytest.mark.parametrize("version", ["v1;2;1", "v2;2;1;0"])
def test_metadata_of_earlier_versions_has_no_ids(version: str) -> None:
    assert decode_metadata(f"{version};5,7,3;10,4,1") == CommittedMetadata(
        1, 0, (Written(5, 7, 3), Written(15, 11, 1))
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v4;0;0;;",
        "v3;0;0;",
        "v2;1;0",
        "v1",
        "v1;1",
        "v1;1;x",
        "v1;1;0;1,2",
        "v1;1;0;1,2,3,4",
        "v1;1;0;a,b,c",
        "nonsense",
    ],
)
def test_metadata_of_somebody_else_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        decode_metadata(text)


def remembered(parts: list[tuple[list[int], int]]) -> list[Written]:
    """What the metadata holds after these transactions."""
    written: list[Written] = []
    for offsets, target in parts:
        written = add_written(written, segments_of(offsets, target))
    return written


@given(transactions())
def test_everything_lost_is_rebuilt(parts: list[tuple[list[int], int]]) -> None:
    offsets = [offset for part, _ in parts for offset in part]
    assert expand(rebuild(offsets, remembered(parts))) == pairs(parts)


@given(transactions(), st.data())
def test_fewer_records_than_were_written_are_refused(
    parts: list[tuple[list[int], int]], data: st.DataObject
) -> None:
    """Which of them one is that is behind a missing one cannot be known by their number."""
    offsets = [offset for part, _ in parts for offset in part]
    del offsets[data.draw(st.integers(0, len(offsets) - 1))]
    with pytest.raises(ValueError, match=r"not staged|the stage holds"):
        rebuild(offsets, remembered(parts))


@given(transactions(), st.data())
def test_what_the_map_has_is_trimmed_and_the_rest_is_rebuilt(
    parts: list[tuple[list[int], int]], data: st.DataObject
) -> None:
    known = pairs(parts)
    kept = data.draw(st.integers(0, len(known)))
    floor_target = known[kept - 1][1] + 1 if kept else None
    floor_source = known[kept - 1][0] + 1 if kept else 0
    trimmed = trim_written(remembered(parts), floor_target, floor_source)
    left = [offset for offset, _ in known if offset >= floor_source]
    assert expand(rebuild(left, trimmed)) == known[kept:]


@given(transactions(), st.integers(1, 3))
def test_a_stage_that_holds_more_records_than_were_written_is_refused(
    parts: list[tuple[list[int], int]], more: int
) -> None:
    offsets = [offset for part, _ in parts for offset in part]
    with pytest.raises(ValueError, match="stage holds"):
        rebuild([*offsets, *range(offsets[-1] + 1, offsets[-1] + 1 + more)], remembered(parts))
