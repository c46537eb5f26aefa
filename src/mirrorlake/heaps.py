"""The memory of a process: how many heaps the C library makes for its threads, how much freed
memory it keeps, and how often Python collects garbage (docs/not_obvious.md).

Heaps are glibc's (`mallopt(3)`, `malloc_trim(3)`); with another C library these do nothing.
"""

import ctypes
import gc
import os

_VARIABLE, _HEAPS = "MALLOC_ARENA_MAX", "2"
#: Where Arrow takes memory for its columns; by default from an allocator of its own.
_ARROW_VARIABLE, _THE_SAME = "ARROW_DEFAULT_MEMORY_POOL", "system"
#: malloc.h: M_ARENA_MAX.
_PARAMETER = -8
#: Thresholds of `gc.set_threshold` (by default 700, 10, 10): new objects before Python collects the
#: youngest generation, and collections of each generation before it collects the next.
_MORE_OBJECTS, _OLDER, _OLDEST = 10_000, 20, 50


def share_heaps() -> None:
    """Have this process' future threads share two heaps, and Arrow use these, here and in children,
    unless the user set else. Call it before many threads are started, and before Arrow is used."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is None:
        return
    os.environ.setdefault(_ARROW_VARIABLE, _THE_SAME)
    if _VARIABLE not in os.environ:
        mallopt(_PARAMETER, int(_HEAPS))


def share_heaps_in_children() -> None:
    """The same for processes that this one will start."""
    os.environ.setdefault(_VARIABLE, _HEAPS)


def give_back() -> None:
    """Return freed memory to the system."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def collect_rarely() -> None:
    """Collect cyclic garbage rarely: with the state of thousands of partitions Python would
    traverse it once a second, and block all threads meanwhile. Only for processes of our own."""
    gc.set_threshold(_MORE_OBJECTS, _OLDER, _OLDEST)
