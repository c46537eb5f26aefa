"""How the work of code grows with what it is given: counted, so that a loaded machine changes
nothing.

A step is a line of Python that runs, or a function that is called or left. What C does within a
line counts as nothing, unless it compares or hashes a `Name`: so names of topics and groups are
such ones where a search in C (`name in some_list`) is to be seen.
"""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

#: How often the steps at n may be done at 4n. Linear work has 4, a loop over all in a loop over all
#: 16; a single comparison of each pair beside a thousand steps for each has 4.7.
LINEAR = 4.4
#: The same where values are sorted that Python compares, such as dataclasses with an order.
SORTED = 5.6
#: How much more an answer may take where only what it does not need to look at grows.
SAME = 1.3
#: The smaller size.
SMALL = 60

#: Prepares work of a size, and gives what is counted of it.
Made = Callable[[int], Callable[[], object]]


class Name(str):
    """A text of which each comparison and each hash is a step, also those that C asks for."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True

    def __hash__(self) -> int:
        return str.__hash__(self)


def steps(work: Callable[[], object]) -> int:
    """How many steps some work takes. Those of other threads do not count."""
    count = 0

    def step(_frame: FrameType, _event: str, _value: object) -> Any:
        nonlocal count
        count += 1
        return step

    tracing, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # what it calls comes at any time
    sys.settrace(step)
    try:
        work()
    finally:
        sys.settrace(tracing)
        if collects:
            gc.enable()
    return count


def growth(made: Made, small: int = SMALL) -> float:
    """How many times the steps of size `small` are done at four times the size."""
    made(small)()  # what is made once, such as compiled patterns, is made
    return steps(made(4 * small)) / max(1, steps(made(small)))
