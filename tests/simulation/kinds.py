"""All kinds of schedules that are drawn: what `make chaos` runs, so many of each in turn."""

import random
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.simulation import (
    test_failover_schedules,
    test_group_schedules,
    test_proof_schedules,
    test_resend,
    test_shared_topic_schedules,
)
from tests.simulation.machine import Replication
from tests.simulation.run import simulate
from tests.simulation.test_before_the_session import BeforeTheSession
from tests.simulation.test_older_lake import NewerGenerations, OlderLake
from tests.simulation.test_two_processes import TwoProcesses

#: Draws one schedule, or a fixed number of them, over what it makes in a folder.
Drawn = Callable[[Path, random.Random], object]


class Kind(NamedTuple):
    """`drawn`: a machine, or what draws a schedule. `share`: how many of them run before another
    kind does; of each kind that takes some twenty seconds."""

    drawn: type[Replication] | Drawn
    share: int

    def run(self, schedules: int, seed: int) -> None:
        """Run schedules of a seed. Raises AssertionError where a law is broken."""
        if isinstance(self.drawn, type):
            simulate(schedules, seed, kind=self.drawn)
        else:
            run_drawn(self.drawn, schedules, seed)


def run_drawn(drawn: Drawn, schedules: int, seed: int) -> None:
    """Each schedule has a seed of its own, of those that follow the first one, as the tests give
    them. Raises AssertionError, with that seed, for whatever a schedule ends with."""
    for number in range(seed, seed + schedules):
        with tempfile.TemporaryDirectory(prefix="mirrorlake-schedule-") as folder:
            try:
                drawn(Path(folder), random.Random(number))
            except Exception as error:
                raise AssertionError(f"the schedule of seed {number}: {error!r}") from error


KINDS: Mapping[str, Kind] = {
    "replication": Kind(Replication, 250),
    "before the session": Kind(BeforeTheSession, 60),
    "two processes": Kind(TwoProcesses, 60),
    "older lake": Kind(OlderLake, 150),
    "newer generations": Kind(NewerGenerations, 60),
    "resend": Kind(test_resend.drawn, 200),
    "groups": Kind(test_group_schedules.drawn, 1),
    "failover": Kind(test_failover_schedules.drawn, 2),
    "shared topics": Kind(test_shared_topic_schedules.drawn, 1),
    "proofs": Kind(test_proof_schedules.drawn, 1),
}
