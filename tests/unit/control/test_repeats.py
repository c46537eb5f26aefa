"""A refusal is told once, waits, and is forgotten when nobody wants the change any more."""

from mirrorlake.control.repeats import CONTESTED_TIMES, Contests, RefusedChanges


def test_the_same_refusal_is_told_once() -> None:
    refusals = RefusedChanges()
    assert refusals.is_news("a", "no")
    assert not refusals.is_news("a", "no")
    assert refusals.is_news("a", "still no, but why")
    assert refusals.is_news("b", "no")


def test_what_stands_refused_is_said_of_what_is_asked() -> None:
    refusals = RefusedChanges()
    refusals.is_news("a", "no")
    refusals.is_news("b", "nor this")
    assert refusals.standing(["b", "c", "a"]) == ["nor this", "no"]
    refusals.accepted("a")
    assert refusals.standing(["a", "b"]) == ["nor this"]


def test_what_was_refused_waits_and_is_then_tried_again() -> None:
    patient, hasty = RefusedChanges(retry_seconds=3600), RefusedChanges(retry_seconds=0)
    for refusals in (patient, hasty):
        assert not refusals.waits("a")
        refusals.is_news("a", "no")
    assert patient.waits("a") and not patient.waits("b")
    assert not hasty.waits("a")
    assert not hasty.is_news("a", "no")  # tried again, and not told again


def test_what_is_no_longer_wanted_is_forgotten() -> None:
    refusals = RefusedChanges()
    refusals.is_news("a", "no")
    refusals.keep({"b"})
    assert not refusals.waits("a")
    assert refusals.is_news("a", "no")


def test_what_is_undone_again_and_again_is_contested_for_a_while() -> None:
    patient, hasty = Contests(seconds=3600), Contests(seconds=0)
    for contests in (patient, hasty):
        for _ in range(CONTESTED_TIMES):
            assert not contests.is_contested("a")
            contests.made("a")
    assert patient.is_contested("a") and not patient.is_contested("b")
    assert not hasty.is_contested("a")  # what was long ago does not count
