"""Laws 2, 3 and 4, and that progress is offsets, over a thousand schedules of one seed (DESIGN, Guarantees)."""

from tests.simulation.run import simulate


def test_no_schedule_breaks_a_law() -> None:
    simulate(1_000, 1)
