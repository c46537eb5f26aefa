"""Rows of many threads share commits, and each thread learns what became of its own."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from mirrorlake.lake.lake import GroupCommit


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": list(numbers)})


def test_what_comes_during_a_commit_goes_into_the_next_one() -> None:
    commits: list[list[int]] = []
    first, go = threading.Event(), threading.Event()

    def write(table: pa.Table) -> None:
        first.set()
        assert go.wait(10)
        commits.append(table["n"].to_pylist())

    group = GroupCommit(write)
    with ThreadPoolExecutor(10) as pool:
        lead = pool.submit(group.append, rows(0))
        assert first.wait(10)
        others = [pool.submit(group.append, rows(n)) for n in range(1, 9)]
        while len(group._waiting) < 8:
            threading.Event().wait(0.001)
        go.set()
        for done in (lead, *others):
            done.result(10)
    assert commits[0] == [0]
    assert [sorted(commit) for commit in commits[1:]] == [list(range(1, 9))]


def test_a_failed_commit_is_raised_to_its_own_callers_and_the_next_one_works() -> None:
    written: list[int] = []

    def write(table: pa.Table) -> None:
        if 1 in table["n"].to_pylist():
            raise OSError("disk full")
        written.extend(table["n"].to_pylist())

    group = GroupCommit(write)
    with pytest.raises(OSError, match="disk full"):
        group.append(rows(1))
    group.append(rows(2))
    assert written == [2]
