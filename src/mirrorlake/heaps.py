"""The memory of a process: how many heaps the C library keeps for its threads, what it keeps of
them, and how often Python looks for garbage (docs/not_obvious.md).

Heaps are glibc's (`mallopt(3)`, `malloc_trim(3)`): with another C library they stay as they are.
"""

import ctypes
import gc
import os

_VARIABLE, _HEAPS = "MALLOC_ARENA_MAX", "2"
#: malloc.h: M_ARENA_MAX.
_PARAMETER = -8
#: How many more objects there are before Python looks at the newest; and how often it looks at
#: those before it also looks at older ones, twice (`gc.set_threshold`; by itself 700, 10, 10).
_MORE_OBJECTS, _OLDER, _OLDEST = 10_000, 20, 50


def share_heaps() -> None:
    """Have the threads that this process will start share two heaps, unless the user has set how
    many. Has to come before it has many threads."""
    if (
        _VARIABLE not in os.environ
        and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None
    ):
        mallopt(_PARAMETER, int(_HEAPS))


def share_heaps_in_children() -> None:
    """The same for the processes that it will start."""
    os.environ.setdefault(_VARIABLE, _HEAPS)


def give_back() -> None:
    """Give memory that this process has let go of back to the system."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def collect_rarely() -> None:
    """Have Python look for garbage in cycles rarely. What a process knows of thousands of
    partitions it would walk through once a second, and nothing else runs meanwhile. For a process
    that is ours alone."""
    gc.set_threshold(_MORE_OBJECTS, _OLDER, _OLDEST)
