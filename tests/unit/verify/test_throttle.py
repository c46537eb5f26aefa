"""The limit of bytes a second holds over time, whatever comes at once."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.verify.log_reader import Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def wait(self, seconds: float) -> None:
        self.now += seconds


@given(st.lists(st.tuples(st.integers(1, 5_000), st.floats(0, 3)), min_size=1))
def test_never_more_than_a_second_s_worth_ahead(reads: list[tuple[int, float]]) -> None:
    clock = Clock()
    throttle = Throttle(1_000, lambda: clock.now, clock.wait)
    total, begins = 0, []
    for size, pause in reads:
        clock.now += pause
        begins.append((clock.now, total))
        throttle.took(size)
        total += size
        for began, before in begins:  # in no span of time
            assert total - before <= 1_000 * (clock.now - began + 1.0) + 1


def test_without_a_limit_nobody_waits() -> None:
    clock = Clock()
    Throttle(None, lambda: clock.now, clock.wait).took(10**12)
    assert clock.now == 100.0
