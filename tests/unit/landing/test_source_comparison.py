"""What landing may read: topics made again, ranges lost or rewound, and what an operator
decided."""

from collections.abc import Collection, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.landing.source_comparison import (
    Branch,
    CurrentGenerations,
    Decision,
    Loss,
    SourceComparison,
    TopicGeneration,
    compare_source,
    position_of,
    recreated,
)
from mirrorlake.offsets.positions import LogEnds, TopicAndPartition

OLD, NEW = "old-id", "new-id"
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


def compared(
    positions: Mapping[TopicAndPartition, int],
    starts: Mapping[TopicAndPartition, int],
    decisions: Collection[Decision] = (),
    seen: Mapping[TopicAndPartition, int] | None = None,
    rewound: Mapping[TopicAndPartition, int] | None = None,
    begins: Mapping[TopicAndPartition, int] | None = None,
    made_again: Collection[TopicAndPartition] = (),
) -> SourceComparison:
    """A comparison of logs that begin at `starts` and end at 1,000."""
    return compare_source(
        {key: LogEnds(start, 1_000) for key, start in starts.items()},
        positions,
        decisions=decisions,
        seen=seen or {},
        rewound=rewound or {},
        begins=begins or {},
        made_again=made_again,
    )


def remade(**said: Any) -> Decision:
    return Decision(
        "t",
        None,
        "topic_recreated",
        last_offset=None,
        open=said.get("open", False),
        resolution=said.get("resolution"),
    )


def cut(last: int, **said: Any) -> Decision:
    return Decision(
        "t",
        0,
        "source_truncated",
        last_offset=last,
        open=said.get("open", False),
        resolution=said.get("resolution"),
    )


def test_nothing_happened() -> None:
    assert compared({T0: 50}, {T0: 50}) == SourceComparison(frozenset(), (), (), {T0: 50})


def test_what_is_new_begins_where_its_log_does() -> None:
    """What was gone before was never ours; a partition that was seen before, with nothing in it,
    was."""
    assert compared({}, {T0: 60}).starts == {T0: 60}
    assert compared({}, {T0: 60}, seen={T0: 0}).losses == (Loss("source_truncated", "t", 0, 0, 59),)
    assert compared({}, {T0: 60}, seen={T0: 60}).starts == {T0: 60}


def test_where_nothing_is_staged_landing_begins_where_it_was_asked_to() -> None:
    """What lies before was not asked for, and what is lost behind it was."""
    assert compared({}, {T0: 0, T1: 0}, begins={T0: 60}).starts == {T0: 60, T1: 0}
    assert compared({}, {T0: 40}, begins={T0: 60}) == SourceComparison(
        frozenset(), (), (), {T0: 60}
    )
    assert compared({}, {T0: 80}, begins={T0: 60}).losses == (
        Loss("source_truncated", "t", 0, 60, 79),
    )
    assert compared({T0: 70}, {T0: 0}, begins={T0: 60}).starts == {T0: 70}
    assert compared({T0: 50}, {T0: 0}, begins={T0: 60}).starts == {T0: 50}, (
        "another flow began sooner"
    )
    assert compared({}, {T0: 0}, begins={T0: 1_200}).starts == {T0: 1_000}, (
        "the log went back meanwhile"
    )


def test_a_topic_made_again_is_told_once_and_goes_on_when_a_new_generation_has_begun() -> None:
    current = CurrentGenerations({"t": TopicGeneration(0, OLD), "u": TopicGeneration(0, "u")})
    assert recreated({"t": NEW, "u": "u", "new": "n"}, current, ()) == (
        Loss("topic_recreated", "t"),
    )
    assert recreated({"t": NEW}, current, (remade(open=True),)) == ()
    assert compared({T0: 9, U0: 5}, {T0: 0, U0: 0}, (remade(open=True),)).starts == {U0: 5}
    decided = (remade(resolution="new-generation"),)
    assert recreated({"t": NEW}, CurrentGenerations({"t": TopicGeneration(1, NEW)}), decided) == ()
    assert recreated(
        {"t": "newest"}, CurrentGenerations({"t": TopicGeneration(1, NEW)}), decided
    ) == (Loss("topic_recreated", "t", generation=1),)
    assert compared({T0: 9}, {T0: 0}, decided).starts == {T0: 9}
    assert compared({T0: 9}, {T0: 0}, (remade(resolution="stop"),)).waiting == {T0}


def test_what_a_topic_that_was_made_again_has_lost_by_the_decision_is_given_up() -> None:
    """Its retention goes on while it waits, and nothing named what that took."""
    lost = compared({}, {T0: 60, T1: 0}, made_again=(T0, T1))
    assert lost.starts == {T0: 60, T1: 0} and not (lost.losses or lost.waiting)
    assert lost.given_up == (Loss("source_truncated", "t", 0, 0, 59),)
    told = (cut(59, resolution="continue"),)
    assert not compared({}, {T0: 60}, told, made_again=(T0,)).given_up, "once"
    grown = compared({}, {T0: 70}, told, made_again=(T0,))
    assert grown.given_up == (Loss("source_truncated", "t", 0, 60, 69),)
    landed = compared({T0: 65}, {T0: 70}, told, made_again=(T0,))
    assert landed.losses == (Loss("source_truncated", "t", 0, 65, 69),)
    asked = compared({}, {T0: 40}, begins={T0: 60}, made_again=(T0,))
    assert not (asked.losses or asked.given_up), "what lies before was not asked for"


def test_what_was_gone_before_it_was_landed_is_told_with_its_offsets() -> None:
    found = compared({T0: 50, T1: 7}, {T0: 80, T1: 7})
    assert found.losses == (Loss("source_truncated", "t", 0, 50, 79),)
    assert (found.waiting, found.starts) == ({T0}, {T1: 7})


def test_an_accepted_loss_is_stepped_over_and_grows_until_something_is_landed_behind_it() -> None:
    accepted = (cut(79, resolution="continue"),)
    assert compared({T0: 50}, {T0: 80}, accepted).starts == {T0: 80}
    grown = compared({T0: 50}, {T0: 90}, accepted)
    assert grown.starts == {T0: 90}
    assert (grown.losses, grown.given_up) == ((), (Loss("source_truncated", "t", 0, 80, 89),))
    assert compared({}, {T0: 90}, accepted).starts == {T0: 90}
    for landed, seen in ((85, None), (50, {T0: 85}), (50, {T0: 80})):
        behind = compared({T0: landed}, {T0: 90}, accepted, seen)
        first = max(landed, (seen or {}).get(T0, 0))
        assert behind.losses == (Loss("source_truncated", "t", 0, first, 89),)
        assert not behind.given_up
    assert compared({T0: 85}, {T0: 80}, accepted).starts == {T0: 85}


def test_markers_at_the_end_are_no_loss() -> None:
    """Everything was landed, the last offsets were transaction markers, and retention took it
    all."""
    assert compared({T0: 50}, {T0: 53}, seen={T0: 53}) == SourceComparison(
        frozenset(), (), (), {T0: 53}
    )
    assert compared({T0: 50}, {T0: 0}, seen={T0: 53}).starts == {T0: 50}, "no place to go on from"


def test_a_rewound_partition_waits_alone_and_says_what_is_gone() -> None:
    found = compared({T0: 50, T1: 50}, {T0: 0, T1: 0}, rewound={T0: 30})
    assert found.losses == (Loss("source_rewound", "t", 0, 30, 49),)
    assert (found.waiting, found.starts) == ({T0}, {T1: 50})
    told = Decision("t", 0, "source_rewound", last_offset=49, open=True, resolution=None)
    assert compared({T0: 50, T1: 50}, {T0: 0, T1: 0}, (told,)).starts == {T1: 50}


def test_where_a_partition_goes_on_is_what_its_newest_generation_holds() -> None:
    current = CurrentGenerations({"t": TopicGeneration(1, NEW)}, {T1: Branch(2, 30)})
    assert position_of(T0, current, {T0: (1, 9)}) == 9
    assert position_of(T0, current, {T0: (0, 9)}) is None, "of the topic before"
    assert position_of(T1, current, {T1: (1, 50)}) == 30, "where its log differs"
    assert position_of(T1, current, {T1: (2, 44)}) == 44
    assert position_of(U0, current, {}) is None


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("tu"), st.integers(0, 2)),
        st.tuples(
            st.integers(0, 9),
            st.integers(0, 9),
            st.none() | st.integers(0, 9),
            st.none() | st.integers(0, 9),
        ),
    )
)
def test_nothing_is_ever_skipped_in_silence(
    places: dict[TopicAndPartition, tuple[int, int, int | None, int | None]],
) -> None:
    """Between what is known of a partition and where it goes on nothing lies that is not told; none
    is read twice."""
    positions = {key: end for key, (end, _, _, _) in places.items() if end < 8}
    starts = {key: first for key, (_, first, _, _) in places.items()}
    seen = {key: end for key, (_, _, end, _) in places.items() if end is not None}
    decisions = [
        Decision(*key, "source_truncated", last, False, "continue")
        for key, (_, _, _, last) in places.items()
        if last is not None
    ]
    found = compared(positions, starts, decisions, seen)
    told = {(loss.topic, loss.partition): loss for loss in (*found.losses, *found.given_up)}
    for key in places:
        accepted = next(
            (item.last_offset + 1 for item in decisions if (item.topic, item.partition) == key),
            None,
        )
        known = [end for end in (positions.get(key), seen.get(key), accepted) if end is not None]
        assert (key in found.starts) != (key in found.waiting)
        if known and starts[key] > max(known):
            assert (told[key].first, told[key].last) == (max(known), starts[key] - 1)
        else:
            assert key not in told and key in found.starts
        if key in found.starts:
            assert found.starts[key] >= positions.get(key, 0)
            assert found.starts[key] <= max(positions.get(key, 0), starts[key], accepted or 0)
