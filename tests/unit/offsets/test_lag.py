"""Lag in seconds from samples of ends: known histories, and its laws."""

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.lag import LagHistory
from mirrorlake.offsets.positions import PartitionGeneration

KEY = PartitionGeneration("orders", 0, 0)


def observed(history: LagHistory, *seen: tuple[float, int, int]) -> list[float]:
    """The lag at each (time, produced, end)."""
    return [history.observe(KEY, at, produced, end) for at, produced, end in seen]


def test_a_partition_that_never_had_a_record_has_none() -> None:
    assert observed(LagHistory(), (0, 0, 0), (10, 0, 0), (1000, 0, 0)) == [0, 0, 0]


def test_an_idle_partition_has_none_and_a_record_after_an_hour_is_young() -> None:
    observation = observed(LagHistory(), (0, 100, 100), (3590, 100, 100), (3600, 100, 101))
    assert observation == [0, 0, 5], "it came between the last two samples, not in the idle hour"


def test_a_stopped_partition_is_later_with_each_sample() -> None:
    observation = observed(
        LagHistory(), (0, 100, 100), (10, 100, 200), (20, 100, 300), (3610, 100, 300)
    )
    assert (
        observation[1] < 10
        and observation[2] == observation[1] + 10
        and observation[3] == observation[2] + 3590
    )


def test_a_partition_that_is_a_second_behind_is_told_so() -> None:
    observation = observed(
        LagHistory(), *((10 * n, 1000 * n - 100, 1000 * n) for n in range(1, 50))
    )
    assert all(abs(seconds - 1) < 0.05 for seconds in observation[1:]), (
        "100 records a second, 100 behind"
    )


def test_catching_up_makes_it_younger() -> None:
    history = LagHistory()
    observed(history, (0, 0, 0), (10, 0, 100), (20, 0, 200), (30, 0, 300))
    assert history.observe(KEY, 40, 250, 300) < 40 - 24
    assert history.observe(KEY, 41, 300, 300) == 0


def test_an_end_that_goes_back_begins_anew() -> None:
    history = LagHistory()
    observed(history, (0, 0, 0), (10, 0, 100))
    assert history.observe(KEY, 5000, 0, 50) == 0, (
        "another generation: when its first record came is not known"
    )
    assert history.observe(KEY, 5010, 0, 50) == 10


def test_a_restart_goes_on_counting() -> None:
    before, after = LagHistory(), LagHistory()
    *_, lag = observed(before, (0, 10, 10), (10, 10, 11), (70, 10, 11))
    after.seed(KEY, 70, 10, 11, lag)
    assert after.observe(KEY, 100, 10, 11) == lag + 30
    after.seed(KEY, 70, 10, 500, 60.0)
    assert after.observe(KEY, 100, 10, 600) == 90
    assert 0 < after.observe(KEY, 100, 550, 600) < 30, (
        "what came since the seed came between then and now"
    )
    after.seed(KEY, 70, 10, 10, 0.0)
    assert after.observe(KEY, 100, 10, 10) == 0


def test_a_clock_that_was_set_back_makes_nothing_younger() -> None:
    history = LagHistory()
    *_, lag = observed(history, (3600, 10, 10), (3610, 10, 11), (3670, 10, 11))
    assert history.observe(KEY, 80, 10, 11) == lag, "ten seconds later, an hour was taken off"
    assert history.observe(KEY, 90, 10, 12) == lag + 10
    assert 0 < history.observe(KEY, 95, 11, 12) < 15


def test_partitions_that_are_gone_are_forgotten() -> None:
    history = LagHistory()
    observed(history, (0, 0, 0), (10, 0, 5))
    history.keep(set())
    assert not history._seen
    assert history.observe(KEY, 1000, 0, 5) == 0


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(0, 50), st.integers(0, 60)),
        min_size=1,
        max_size=400,
    ),
    st.integers(4, 16),
)
def test_it_is_right_within_the_samples(steps: list[tuple[int, int, int]], limit: int) -> None:
    """However it goes: 0 exactly when all is produced, never older than the samples allow, and
    bounded."""
    full, history = LagHistory(10_000), LagHistory(limit)
    at, produced, end = 0.0, 0, 0
    arrivals: list[tuple[float, float, int]] = []  # between these times the end became that
    for seconds, came, moved in steps:
        arrivals.append((at, at + seconds, end + came))
        at, end = at + seconds, end + came
        produced = min(end, produced + moved)
        lag, thinned = full.observe(KEY, at, produced, end), history.observe(KEY, at, produced, end)
        assert (lag == 0) == (produced == end) or len(arrivals) == 1
        assert 0 <= thinned <= at
        assert len(history._seen[KEY]) <= limit + 1
        if produced < end and len(arrivals) > 1:
            since, until = next((a, b) for a, b, upto in arrivals if upto > produced)
            assert at - until - 1e-6 <= lag <= at - since + 1e-6
