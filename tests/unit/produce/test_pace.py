"""How large transactions become: small enough for a slow target, as large as ever for a fast
one."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.produce.pace import AIM_SECONDS, FIRST, LARGEST, SMALLEST, Pace

SIZES = st.integers(0, 2 * LARGEST)
SECONDS = st.floats(0, 1_000)
#: Bytes/s at which even the smallest transaction lasts no longer than it should, up to more than
#: any network.
SPEEDS = st.floats(SMALLEST / AIM_SECONDS, 1e10)


@given(st.lists(st.tuples(st.booleans(), SIZES, SECONDS)))
def test_the_limit_stays_within_its_bounds_and_at_most_doubles(
    past: list[tuple[bool, int, float]],
) -> None:
    pace = Pace()
    for good, size, seconds in past:
        before = pace.limit
        (pace.measured if good else pace.failed)(size, seconds)
        assert SMALLEST <= pace.limit <= min(LARGEST, 2 * before)


@given(SPEEDS)
def test_full_transactions_come_to_last_as_long_as_they_should(speed: float) -> None:
    pace = Pace()
    for number in range(6):
        seconds = pace.limit / speed
        assert number == 0 or seconds <= AIM_SECONDS * 1.001
        pace.measured(pace.limit, seconds)
    wanted = min(LARGEST, speed * AIM_SECONDS)
    assert wanted - 2 <= pace.limit <= wanted


@given(SPEEDS, SPEEDS)
def test_a_target_that_changes_its_speed_is_followed(before: float, after: float) -> None:
    pace = Pace()
    for speed in [before] * 10 + [after] * 20:
        pace.measured(pace.limit, pace.limit / speed)
    assert pace.limit >= min(LARGEST, after * AIM_SECONDS) - 2


@given(st.integers(1, FIRST // 2 - 1), st.floats(0, AIM_SECONDS))
def test_a_few_records_at_a_time_say_nothing_of_the_speed(size: int, seconds: float) -> None:
    """As on a flow that has caught up: its transactions are as slow as their commit, and are not
    made smaller."""
    pace = Pace()
    for _ in range(10):
        pace.measured(size, seconds)
    assert pace.limit == FIRST


def test_a_target_that_takes_nothing_is_asked_for_ever_less() -> None:
    pace = Pace()
    limits = []
    for _ in range(8):
        pace.failed(0, 30.0)
        limits.append(pace.limit)
    assert limits == sorted(limits, reverse=True) and limits[-1] == SMALLEST


def test_a_fast_target_gets_the_largest_after_a_few() -> None:
    pace = Pace()
    for _ in range(3):
        pace.measured(pace.limit, 0.1)
    assert pace.limit == LARGEST
