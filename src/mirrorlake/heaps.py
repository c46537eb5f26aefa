"""How many heaps the C library keeps for the threads of a process, and what it keeps of them
(docs/not_obvious.md).

glibc only (`mallopt(3)`, `malloc_trim(3)`); where there is another C library nothing here does
anything.
"""

import ctypes
import os

_VARIABLE, _HEAPS = "MALLOC_ARENA_MAX", "2"
#: malloc.h: M_ARENA_MAX.
_PARAMETER = -8


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
