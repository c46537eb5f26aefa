"""Which generation of a target topic may be written to: topics gone or made again, and what was
decided."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.control.target_comparison import TargetComparison, TargetLoss, compare_targets
from mirrorlake.offsets.generations import NotedTarget, TargetDecision, counts_from

OLD, NEW = "old-id", "new-id"
FIRST = NotedTarget(0, OLD)


def compared(
    there: str | None = OLD,
    noted: NotedTarget | None = FIRST,
    *decisions: TargetDecision,
    told: bool = True,
) -> TargetComparison:
    """A comparison of the one topic `t`, mirrored to `east.t`, which has the id `there` now (None:
    it is gone)."""
    ids = {"east.t": there} if there is not None and told else {}
    missing = {"east.t"} if there is None else set()
    return compare_targets(
        {"t": "east.t"}, ids, missing, {} if noted is None else {"east.t": noted}, decisions
    )


def said(resolution: str | None, generation: int = 0) -> TargetDecision:
    return TargetDecision("t", generation, resolution)


def test_a_topic_that_is_the_same_lives_on() -> None:
    comparison = compared()
    assert (comparison.living, comparison.begin, comparison.losses, comparison.waiting) == (
        {"t": FIRST},
        {},
        (),
        frozenset(),
    )


def test_a_topic_seen_first_is_noted_whether_it_is_there_or_not() -> None:
    assert compared(noted=None).begin == compared(None, None).begin == {"t": (0, "stage")}
    assert not compared(noted=None).living


def test_a_topic_that_is_gone_or_made_again_waits_and_is_told_once() -> None:
    assert compared(None).losses == (TargetLoss("t", "east.t", 0, False),)
    assert compared(NEW).losses == (TargetLoss("t", "east.t", 0, True),)
    assert compared(NEW).waiting == {"t"} and not compared(NEW).living
    told = compared(NEW, FIRST, said(None))
    assert (told.losses, told.waiting) == ((), {"t"})


def test_a_decision_begins_the_next_generation_and_counts_for_no_later_one() -> None:
    for there in (NEW, None):
        assert compared(there, FIRST, said("again")).begin == {"t": (1, "stage")}
        assert compared(there, FIRST, said("continue")).begin == {"t": (1, "end")}
    second = NotedTarget(1, NEW)
    assert compared(NEW, second, said("again")).living == {"t": second}
    assert compared("third-id", second, said("again")).losses == (
        TargetLoss("t", "east.t", 1, True),
    )


def test_what_an_operator_stopped_gets_nothing_whatever_is_there() -> None:
    for there in (OLD, NEW, None):
        comparison = compared(there, FIRST, said("stop"))
        assert (comparison.stopped, comparison.living, comparison.begin, comparison.losses) == (
            {"t"},
            {},
            {},
            (),
        )


def test_what_was_decided_of_a_mirror_of_another_name_holds_for_no_other() -> None:
    """Its generations have the same numbers."""
    for choice in ("stop", "again", "continue"):
        comparison = compared(OLD, FIRST, TargetDecision("t", 0, choice, "old.t"))
        assert comparison.living == {"t": FIRST} and not comparison.unfounded
        loss = compared(NEW, FIRST, TargetDecision("t", 0, choice, "old.t"))
        assert loss.losses and loss.waiting == {"t"}
    mine = TargetDecision("t", 0, "stop", "east.t")
    assert compared(OLD, FIRST, mine, TargetDecision("t", 0, "again", "old.t")).stopped == {"t"}
    left = compared(OLD, FIRST, TargetDecision("t", 7, None, "old.t"))
    assert left.living and left.unfounded == {"t"}, "nothing waits for the old one any more"


def test_an_incident_about_a_topic_that_is_the_same_after_all_is_unfounded() -> None:
    """A broker that did not know the topic for a moment; nothing may be produced again then."""
    for resolution in (None, "again", "continue"):
        comparison = compared(OLD, FIRST, said(resolution))
        assert (comparison.unfounded, comparison.living, comparison.begin) == (
            {"t"},
            {"t": FIRST},
            {},
        )
    closed = compared(OLD, FIRST, said("the topic is the one that it was"))
    assert not closed.unfounded and closed.living
    assert compared(NEW, FIRST, said("the topic is the one that it was")).losses, (
        "told anew when it comes true"
    )


def test_what_the_target_does_not_tell_counts_as_unchanged() -> None:
    assert compared(told=False).living == {"t": FIRST}
    waiting = compared(OLD, FIRST, said(None), told=False)
    assert (waiting.waiting, waiting.unfounded, waiting.living) == ({"t"}, frozenset(), {})
    assert not compared(OLD, FIRST, said("again"), told=False).living


def test_a_generation_whose_id_nobody_noted_is_over() -> None:
    assert (
        compared(OLD, NotedTarget(0, "")).losses
        == compared(OLD, NotedTarget(0, ""), told=True).losses
        != ()
    )
    assert not compared(told=False, noted=NotedTarget(0, "")).living


CHOICES = st.sampled_from([None, "again", "continue", "stop", "closed by itself"])


@given(
    st.none() | st.sampled_from([OLD, NEW]),
    st.none() | st.builds(NotedTarget, st.integers(0, 2), st.sampled_from([OLD, NEW])),
    st.lists(st.builds(TargetDecision, st.just("t"), st.integers(0, 2), CHOICES), max_size=4),
    st.booleans(),
)
def test_every_topic_is_in_one_state(
    there: str | None, noted: NotedTarget | None, decisions: list[TargetDecision], told: bool
) -> None:
    comparison = compared(there, noted, *decisions, told=told)
    states = [
        set(comparison.living),
        set(comparison.begin),
        set(comparison.waiting),
        set(comparison.stopped),
    ]
    assert sum(map(len, states)) == 1 and set.union(*states) == {"t"}
    if comparison.living and there is not None and told:
        assert noted is not None and noted.topic_id == there, (
            "never produced to a topic with another id"
        )
    if comparison.begin and noted is not None:
        assert comparison.begin["t"][0] == noted.number + 1
        assert (there if told else None) != noted.topic_id
    assert {loss.topic for loss in comparison.losses} <= comparison.waiting


@given(st.lists(st.sampled_from(["stage", "end"]), min_size=1, max_size=6))
def test_what_counts_as_produced_reaches_back_to_the_newest_generation_that_got_all(
    begins: list[str],
) -> None:
    noted = [NotedTarget(number, str(number), begin) for number, begin in enumerate(begins)]  # type: ignore[arg-type]
    first = counts_from(noted)
    assert first == 0 or begins[first] == "stage"
    assert all(begin == "end" for begin in begins[first + 1 :])
