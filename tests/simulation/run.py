"""Running schedules: so many, from a seed that gives the same ones again."""

from collections.abc import Collection

import pyarrow as pa
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.simulation.machine import Replication

#: Steps of a schedule, before the one that checks everything.
STEPS = 12


def simulate(
    schedules: int,
    number: int,
    without: Collection[str] = (),
    shrink: bool = True,
    kind: type[Replication] = Replication,
) -> None:
    """Run schedules of the seed `number`, of a kind, without some events or faults. Raises
    AssertionError, with the simplest schedule that was found, where a law is broken."""

    @seed(number)
    class Machine(kind):  # type: ignore[misc, valid-type]
        pass

    Machine.without = frozenset(without)
    threads = pa.cpu_count()
    pa.set_cpu_count(1)  # tables of some rows: handing them to threads costs more than the work
    try:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=schedules,
                stateful_step_count=STEPS,
                database=None,
                deadline=None,
                phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
                print_blob=False,
            ),
        )
    finally:
        pa.set_cpu_count(threads)
