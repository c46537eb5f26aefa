"""How executors scale: the arithmetic, its table, the page, and the groups that hold processes. No
clusters."""

import os
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from mirrorlake.attempts import attempts
from mirrorlake.devtools.bench.measure import Race, Sample
from mirrorlake.errors import InputError
from tests.bench.executors import CORES_OF_ONE, ROOT, Quotas, Scaled, scaled_of
from tests.bench.tables import tables
from tests.support.docs_scripts import docs_script


def sample(at: float, written: int, cpu: float, brokers: float) -> Sample:
    return Sample(at, written, written, 0, cpu=cpu, brokers_cpu=brokers)


#: Reads from second 12 on, and is done at second 22.
SAMPLES = (
    sample(10, 0, 6, 1),
    sample(12, 0, 8, 1),
    sample(17, 400_000, 11, 2),
    sample(22, 1_000_000, 15, 4),
)
#: What the executors have taken by each.
SECONDS = (2, 3, 5, 8)


def test_cores_are_those_since_its_first_read() -> None:
    found = scaled_of(Race("x", 1_000_000, SAMPLES, first_read=12.0), 2, SECONDS)
    assert found == Scaled(
        executors=2,
        records=1_000_000,
        seconds=10.0,
        records_per_second=100_000,
        driver_cores=0.2,
        executors_cores=0.5,
        brokers_cores=0.3,
        driver_share=0.286,
    )


def test_the_driver_is_what_no_executor_is() -> None:
    """All CPU of the run without that of executors."""
    busy = [each.cpu for each in SAMPLES]
    found = scaled_of(Race("x", 1_000_000, SAMPLES, first_read=12.0), 2, busy)
    assert (found.driver_cores, found.driver_share) == (0.0, 0.0)


def run(executors: int, rate: int, busy: float) -> dict[str, float]:
    return vars(Scaled(executors, 1_000, 1.0, rate, 0.1, busy, 0.2, driver_share=0.25))


def test_its_table_says_how_much_more_than_one_they_take() -> None:
    part = {
        "cores_of_one": CORES_OF_ONE,
        "record_bytes": 120,
        "runs": [run(1, 100_000, 0.25), run(2, 190_000, 0.5)],
    }
    console = Console(file=(out := StringIO()), width=200)
    console.print(*tables({"executors": part}))
    assert "190,000" in out.getvalue() and "1.90x" in out.getvalue() and "25%" in out.getvalue()


def test_where_it_bends() -> None:
    maker = docs_script("make_capacity")
    straight = [run(1, 100_000, 0.25), run(2, 190_000, 0.5), run(4, 370_000, 1.0)]
    assert maker.bend(straight, CORES_OF_ONE) == (
        "It does not bend up to 4 executors: they bring 92% of 4 times the rate of one, and are "
        "busy for 100% of the time that they have."
    )
    bent = [*straight[:2], run(4, 300_000, 0.6)]
    assert maker.bend(bent, CORES_OF_ONE) == (
        "It bends at 4 executors: they bring 75% of 4 times the rate of one, and are busy for 60% "
        "of the time that they have."
    )


def test_a_group_of_the_second_version(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n", encoding="utf-8")
    (tmp_path / "cgroup.subtree_control").write_text("", encoding="utf-8")
    made = tmp_path / f"mirrorlake-{os.getpid()}-tried"
    with pytest.raises(InputError, match=r"cpu\.max"):
        Quotas(0.25, tmp_path)  # no kernel is behind this folder, so a group has no files
    assert not made.exists()
    assert (tmp_path / "cgroup.subtree_control").read_text(encoding="utf-8") == "+cpu"


def test_without_the_controller_it_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be held to a part of a core here: .*as root"):
        Quotas(0.25, tmp_path)


def test_a_process_and_its_children_share_a_quota() -> None:
    try:
        quotas = Quotas(0.25)
    except InputError as refused:
        pytest.skip(str(refused))
    spin = "import os, sys; sys.stdin.readline(); os.fork()\nwhile True: pass"
    command = [sys.executable, "-c", spin]
    with quotas, subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as child:
        try:
            quotas.hold("spin", [child.pid])
            assert child.stdin is not None
            child.stdin.write(b"\n")
            child.stdin.flush()
            process = psutil.Process(child.pid)
            for _ in attempts(5.0, 0.05):
                if process.children():
                    break
            both, began = [process, *process.children()], time.monotonic()
            before = sum(sum(each.cpu_times()[:2]) for each in both)
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(1.2)
            after = sum(sum(each.cpu_times()[:2]) for each in both)
            took = time.monotonic() - began
        finally:
            os.killpg(child.pid, signal.SIGKILL)
        assert len(both) == 2 and after - before < 0.3 * took + 0.1, "of up to two cores"
    assert not [*ROOT.glob(f"**/mirrorlake-{os.getpid()}-*")]
