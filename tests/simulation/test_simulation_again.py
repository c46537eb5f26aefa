"""Another thousand schedules, in a file of their own: test processes share the work by file."""

from tests.simulation.run import simulate


def test_no_schedule_of_another_seed_breaks_a_law() -> None:
    simulate(1_000, 2)
