"""Process trees, of real processes (processes.py)."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from mirrorlake.processes import (
    command_of,
    cpu_seconds,
    memory_mib,
    resident_bytes,
    tree_of,
    wait_for_end,
)

Start = Callable[[str], "subprocess.Popen[bytes]"]
#: Burns CPU time, tells that it has, and stays.
BURN = "import sys, time\nwhile time.process_time() < 0.5: pass\nprint(flush=True); time.sleep(60)"
#: Starts a child that does, tells of it, and stays.
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}, 'child'])"
#: Lets a child burn and end, waits for it, and stays.
WAITED = PARENT.replace("time.sleep(60)", "") + "; import time; time.sleep(60)"


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str) -> "subprocess.Popen[bytes]":
        started.append(subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE))
        return started[-1]

    yield start
    for process in started:
        for one in tree_of([process.pid]):
            one.kill()
        process.communicate()


def burned(process: "subprocess.Popen[bytes]") -> "subprocess.Popen[bytes]":
    """The same process, once it, or its child, has spent its time."""
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_tree_has_each_process_once_and_no_strangers(start: Start) -> None:
    stranger, parent = start(BURN), burned(start(PARENT))
    tree = {process.pid for process in tree_of([parent.pid])}
    assert parent.pid in tree and len(tree) == 2
    assert stranger.pid not in tree
    assert sorted(process.pid for process in tree_of([*tree, parent.pid])) == sorted(tree)


@pytest.mark.parametrize("code", [PARENT, WAITED], ids=["alive", "waited for"])
def test_the_cpu_time_of_children_counts(start: Start, code: str) -> None:
    parent = burned(start(code))
    psutil.wait_procs([one for one in psutil.Process(parent.pid).children() if code is WAITED], 10)
    assert cpu_seconds([parent.pid]) >= 0.3


def test_what_is_gone_has_spent_and_holds_nothing(start: Start) -> None:
    gone = start("")
    gone.wait()
    assert cpu_seconds([gone.pid]) == 0.0 and memory_mib([gone.pid], "-c") == 0.0
    assert command_of(gone.pid) == "" and tree_of([gone.pid]) == []


def test_a_zombie_has_no_command(start: Start) -> None:
    zombie = burned(start("print('ends')"))
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.Process(zombie.pid).status() == psutil.STATUS_ZOMBIE
    assert command_of(zombie.pid) == ""
    wait_for_end(tree_of([zombie.pid]), 0.0)  # which does not kill what has ended
    assert zombie.wait(10) == 0


def test_memory_is_told_by_a_part_of_the_command(start: Start) -> None:
    parent = burned(start(PARENT))
    both, child = memory_mib([parent.pid], "-c"), memory_mib([parent.pid], "child")
    assert both > child > 1
    assert 0 < memory_mib([parent.pid], "-c", own=True) < both, "without files that are mapped"
    assert memory_mib([parent.pid], None) == pytest.approx(both, rel=0.2), (
        "whatever they are called by"
    )
    assert memory_mib([parent.pid], "-c", program="java") == 0.0
    assert memory_mib([parent.pid], "chil") == 0.0, "a part of the command is one whole argument"


def test_memory_by_kind_of_process(start: Start) -> None:
    parent = burned(start(PARENT))
    sizes = resident_bytes(parent.pid)
    assert sizes["driver"] > 1 << 20 and sizes["workers"] > 1 << 20 and sizes["java"] == 0


def test_what_does_not_end_by_itself_is_killed_and_nothing_else(start: Start) -> None:
    ours, other = burned(start(BURN)), start(BURN)
    seen = tree_of([ours.pid, 2**22 + 1])
    wait_for_end(seen, 0.3)
    assert ours.wait(10) == -9
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(0.5)


def test_a_reused_id_is_left_alone(start: Start) -> None:
    other = burned(start(BURN))
    before = psutil.Process(other.pid)
    before._ident = (before.pid, before._ident[1] - 60.0)  # type: ignore[attr-defined]
    wait_for_end([before], 0.0)
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(0.5)
