"""`make chaos` runs each kind of schedule that a test draws."""

import importlib
import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.simulation import run
from tests.simulation.kinds import KINDS, run_drawn
from tests.simulation.machine import Replication
from tests.simulation.schedule import Schedule

FOLDER = Path(__file__).parent
MODULES = [
    importlib.import_module(f"tests.simulation.{path.stem}")
    for path in sorted(FOLDER.glob("test_*.py"))
    if path.stem != Path(__file__).stem
]
#: What is drawn otherwise: one machine, in a process of its own, or on broken code.
OTHERWISE = {"test_simulation", "test_mutations"}


def machines() -> Iterator[type[Replication]]:
    """All that schedules are drawn of: the ones that are written by hand are of none."""
    left = [Replication]
    while left:
        kind = left.pop()
        yield kind
        left += [one for one in kind.__subclasses__() if one is not Schedule]


def draws(module: ModuleType) -> bool:
    return getattr(module, "random", None) is random


def test_each_machine_is_a_kind() -> None:
    """But for those that a run makes for its seed. By their names: pytest imports a module of tests
    under another one than those that share it do."""
    made = {kind.__name__ for kind in machines() if kind.__module__ != run.__name__}
    assert made == {kind.drawn.__name__ for kind in KINDS.values() if isinstance(kind.drawn, type)}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_what_draws_by_itself_is_a_kind(module: ModuleType) -> None:
    name = module.__name__.rpartition(".")[2]
    known = [kind.drawn for kind in KINDS.values()]
    if draws(module):
        assert module.drawn in known, f"{name} has no `drawn` that is in KINDS"
    machine = any(getattr(one, "__module__", None) == module.__name__ for one in known)
    if "simulate(" in Path(str(module.__file__)).read_text() and name not in OTHERWISE:
        assert machine, f"{name} runs schedules of no machine that is in KINDS"


def test_a_schedule_that_fails_names_its_seed() -> None:
    def fails(_: Path, chance: random.Random) -> None:
        assert chance.random() != random.Random(6).random(), "it is the one"

    run_drawn(fails, 2, 4)
    with pytest.raises(AssertionError, match="seed 6.*it is the one"):
        run_drawn(fails, 9, 4)
