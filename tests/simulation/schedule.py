"""One schedule of the simulation, written out by hand."""

from tests.simulation.driver import Driver
from tests.simulation.machine import Replication


class Schedule(Replication):
    """A schedule that is written down: `do` works off tasks, as a machine's rules do."""

    fixed = {
        "max_records": 2,
        "produce_tasks": 1,
        "land_files": 1,
        "land_records": 100,
        "transaction_records": 2,
        "waits": False,
    }

    def do(self, *work: str, salt: int = 0) -> None:
        for name in work:
            self._do(name, salt, None)

    def killed(self, salt: int = 0) -> None:
        self.world.salt = salt
        self.driver.die()
        self.world.die()
        self.driver = Driver(self.world)
