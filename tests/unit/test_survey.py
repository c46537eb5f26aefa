"""What landing may read: topics made again, ranges lost, and what an operator decided."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.core.survey import Decision, Key, Life, Loss, Survey, survey

OLD, NEW = "old-id", "new-id"


def look(
    ids: dict[str, str] | None = None,
    lives: dict[str, Life] | None = None,
    landed: dict[Key, int] | None = None,
    starts: dict[Key, int] | None = None,
    decisions: tuple[Decision, ...] = (),
    passed: dict[Key, int] | None = None,
) -> Survey:
    """A survey of the one topic `t`, known and unchanged unless said otherwise."""
    known = {"t": Life(0, OLD)} if lives is None else lives
    return survey({"t": OLD} if ids is None else ids, known, landed or {}, starts or {}, decisions, passed)


def remade(**said: Any) -> Decision:
    return Decision("t", None, "topic_recreated", None, said.get("open", False), said.get("resolution"))


def cut(last: int, **said: Any) -> Decision:
    return Decision("t", 0, "source_truncated", last, said.get("open", False), said.get("resolution"))


def test_nothing_happened() -> None:
    found = look(landed={("t", 0): 50}, starts={("t", 0): 50})
    assert (found.blocked, found.losses, found.new_lives) == (frozenset(), (), {})
    assert found.starts == {("t", 0): 50}


def test_a_topic_seen_first_begins_its_first_life() -> None:
    assert look(lives={}).new_lives == {"t": Life(0, OLD)}
    assert not look(lives={}).blocked


def test_a_topic_made_again_waits_alone() -> None:
    found = look({"t": NEW, "u": "u"}, {"t": Life(0, OLD), "u": Life(0, "u")}, {("t", 0): 9, ("u", 0): 5})
    assert found.losses == (Loss("topic_recreated", "t"),)
    assert found.blocked == {"t"}
    assert found.starts[("u", 0)] == 5


def test_it_is_told_once_and_goes_on_when_a_new_life_has_begun() -> None:
    waiting = look({"t": NEW}, decisions=(remade(open=True),))
    assert (waiting.blocked, waiting.losses) == ({"t"}, ())
    decided = look({"t": NEW}, {"t": Life(1, NEW)}, decisions=(remade(resolution="new-generation"),))
    assert (decided.blocked, decided.losses, decided.generations) == (frozenset(), (), {"t": 1})
    assert look({"t": NEW}, {"t": Life(1, NEW)}, decisions=(remade(resolution="stop"),)).blocked == {"t"}


def test_made_again_once_more_after_a_decision() -> None:
    found = look({"t": "newest"}, {"t": Life(1, NEW)}, decisions=(remade(resolution="new-generation"),))
    assert found.losses == (Loss("topic_recreated", "t"),)


def test_what_was_gone_before_it_was_landed_is_told_with_its_offsets() -> None:
    found = look(landed={("t", 0): 50, ("t", 1): 7}, starts={("t", 0): 80, ("t", 1): 7})
    assert found.losses == (Loss("source_truncated", "t", 0, 50, 79),)
    assert found.blocked == {"t"}


def test_an_accepted_loss_is_stepped_over_and_the_next_one_told() -> None:
    accepted = (cut(79, resolution="continue"),)
    assert look(landed={("t", 0): 50}, starts={("t", 0): 80}, decisions=accepted).starts == {("t", 0): 80}
    more = look(landed={("t", 0): 50}, starts={("t", 0): 90}, decisions=accepted)
    assert more.losses == (Loss("source_truncated", "t", 0, 80, 89),)
    behind = look(landed={("t", 0): 85}, starts={("t", 0): 80}, decisions=accepted)
    assert behind.starts == {("t", 0): 85}


def test_markers_at_the_end_are_no_loss() -> None:
    """Everything was landed, the last offsets were transaction markers, and retention took it all."""
    found = look(landed={("t", 0): 50}, starts={("t", 0): 53}, passed={("t", 0): 53})
    assert (found.losses, found.blocked, found.starts) == ((), frozenset(), {})


def test_a_topic_that_is_gone_is_no_loss() -> None:
    found = look({}, landed={("t", 0): 50}, decisions=(remade(open=True),))
    assert (found.losses, found.blocked, found.starts) == ((), frozenset(), {})


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("tu"), st.integers(0, 2)), st.tuples(st.integers(0, 9), st.integers(0, 9))
    )
)
def test_nothing_is_ever_skipped_in_silence(places: dict[Key, tuple[int, int]]) -> None:
    """Every partition goes on exactly where it was landed to, or its loss is told and its topic waits."""
    landed = {key: end for key, (end, _) in places.items()}
    starts = {key: first for key, (_, first) in places.items()}
    found = survey({"t": "t", "u": "u"}, {"t": Life(0, "t"), "u": Life(0, "u")}, landed, starts, ())
    told = {(loss.topic, loss.partition): (loss.first, loss.last) for loss in found.losses}
    for key, (end, first) in places.items():
        if first > end:
            assert key[0] in found.blocked
            assert key not in found.starts
        else:
            assert found.starts[key] == end
    assert all(told[key][0] == landed[key] and told[key][1] == starts[key] - 1 for key in told)
    assert found.blocked == {topic for topic, _ in told}
