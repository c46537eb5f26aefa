"""Since when a transaction has been open, by samples of clocks that are set."""

from mirrorlake.offsets.lag import Held, OpenTransactions

KEY = ("orders", 0)


def since(known: OpenTransactions, *seen: float) -> list[float | None]:
    """Since when it was known to be open, at each time; offset 7 was the last stable one."""
    found: list[float | None] = []
    for at in seen:
        known.observe(at, {KEY: 7})
        standing = known.standing(KEY)
        found.append(None if standing is None else standing.since)
    return found


def test_it_is_open_since_it_was_seen_first() -> None:
    assert since(OpenTransactions(), 10, 20, 30) == [None, 10, 10]


def test_a_clock_that_was_set_back_does_not_keep_it_young() -> None:
    """It counts from the time that the clock was set to, at the latest."""
    assert since(OpenTransactions(), 3600, 10, 20) == [None, 10, 10]
    known = OpenTransactions()
    known.seed(KEY, Held(7, 3600))
    assert since(known, 10, 20) == [10, 10]
