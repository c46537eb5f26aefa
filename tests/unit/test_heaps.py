"""Threads share heaps of the C library where they were told to, and memory that was let go of is
the system's again."""

import ctypes
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="this C library is not glibc, whose heaps are meant",
)

#: Prints how many heaps there are when sixteen threads have asked for memory.
_THREADS = """
import ctypes, threading
from mirrorlake.heaps import share_heaps
{first}
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fdopen.restype = ctypes.c_void_p
met = threading.Barrier(17)
for _ in range(16):
    work = lambda: (libc.malloc(1000), met.wait(), met.wait())
    threading.Thread(target=work, daemon=True).start()
met.wait()
stdout = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, stdout)
libc.fflush(stdout)
met.wait()
"""

#: Prints by how many MiB what it needs went down: of blocks that are free below one that is not.
_TRIMMED = """
import ctypes, os
from mirrorlake.heaps import give_back
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [libc.malloc(10_000) for _ in range(10_000)]
for block in blocks:
    ctypes.memset(block, 1, 10_000)
for block in blocks[:-1]:
    libc.free(block)
def size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
before = size()
give_back()
print((before - size()) >> 20)
"""

#: Prints where Arrow takes its memory from, in this process and in a child.
_ARROW = """
import subprocess, sys
from mirrorlake.heaps import share_heaps
share_heaps()
import mirrorlake.cli.main, mirrorlake.cli.replicate
here = "import pyarrow; print(pyarrow.default_memory_pool().backend_name, flush=True)"
exec(here)
subprocess.run([sys.executable, "-c", here], check=True)
"""
_VARIABLES = "MALLOC_ARENA_MAX", "ARROW_DEFAULT_MEMORY_POOL"


def _said(code: str, **variables: str) -> str:
    known = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", code], env=known | variables, capture_output=True, check=True
    )
    return done.stdout.decode()


def _heaps(first: str, **variables: str) -> int:
    return _said(_THREADS.format(first=first), **variables).count("<heap ")


def test_two_heaps_for_all_threads() -> None:
    assert _heaps("") > 5
    assert _heaps("share_heaps()") == 2
    assert _heaps("share_heaps()", MALLOC_ARENA_MAX="4") == 4, "as somebody has said"


def test_memory_is_given_back() -> None:
    assert int(_said(_TRIMMED)) > 50


def test_arrow_uses_the_same_heaps() -> None:
    assert _said(_ARROW).split() == ["system", "system"]


def test_arrow_uses_the_pool_that_the_user_has_chosen() -> None:
    assert "system" not in _said(_ARROW, ARROW_DEFAULT_MEMORY_POOL="mimalloc").split()
