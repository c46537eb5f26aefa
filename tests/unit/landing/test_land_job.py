"""What the processes of a landing query hand to each other: a job, its parts, where a batch ends,
and how much the next one may hold."""

import json
import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.landing import job as landing_job
from mirrorlake.landing.job import BatchNumbers
from mirrorlake.landing.pace import NOTHING_KNOWN, Pace
from mirrorlake.landing.ranges import offsets_document, read_document
from mirrorlake.offsets.positions import TopicAndPartition
from tests.support.landing import job_in

OFFSETS = st.dictionaries(
    st.tuples(st.sampled_from(["größe", "b.c", "x"]), st.integers(0, 9)), st.integers(0, 2**40)
)


@given(OFFSETS, st.none() | st.text(max_size=5))
def test_where_a_batch_ends_comes_back_from_a_checkpoint(
    ends: dict[TopicAndPartition, int], noted: str | None
) -> None:
    assert read_document(json.loads(json.dumps(offsets_document(ends, noted)))) == (ends, noted)


def test_the_same_ends_are_the_same_text() -> None:
    """Spark goes by it whether there is anything new."""
    ends = {("b", 1): 2, ("a", 0): 1, ("b", 0): 3}
    turned = dict(reversed(ends.items()))
    assert json.dumps(offsets_document(ends)) == json.dumps(offsets_document(turned))


@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_parts_are_a_batch_whatever_their_number(tmp_path: Path, tasks: int) -> None:
    """Each says up to where the whole batch covers its partitions, though another part may have
    the rest of one."""
    job = job_in(tmp_path, generations={("a", 0): 3, ("gone", 0): 1})
    ranges = {("a", 0): (10, 90_010), ("a", 1): (0, 5), ("b", 0): (7, 40_007)}
    parts = job.parts(ranges, "[]", tasks, NOTHING_KNOWN)
    assert 1 <= len(parts) <= tasks and len({part.landed_at for part in parts}) == 1
    for key, (first, end) in ranges.items():
        shares = sorted(part.ranges[key] for part in parts if key in part.ranges)
        assert shares[0][0] == first and shares[-1][1] == end
        assert all(one[1] == other[0] for one, other in zip(shares, shares[1:], strict=False))
        for part in parts:
            if key in part.ranges:
                assert part.columns(key) == {
                    "source_cluster": "east",
                    "topic": key[0],
                    "landed_at": part.landed_at * 1_000,
                    "batch_id": part.batch,
                    "generation": 3 if key == ("a", 0) else 0,
                    "batch_end": end,
                    "open_ends": "[]",
                }
    assert job.parts({}, None, tasks, NOTHING_KNOWN) == []


def test_numbers_of_batches_rise_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By them a cut as of a time knows which batch came first; when a batch was landed the clock
    says alone. What one process numbers, others go on from: the planner of a query is one."""
    told = (900, 901, 2_000, 2_000, 1_500, 3_000)
    clock = iter(told)
    now = SimpleNamespace(time_ns=lambda: next(clock) * 1_000_000)
    monkeypatch.setattr(landing_job, "time", now)
    job = job_in(tmp_path, numbers=BatchNumbers(1_000))
    numbers, times = [], []
    for _ in told:
        (part,) = job.parts({("a", 0): (0, 1)}, None, 1, NOTHING_KNOWN)
        numbers.append(part.batch)
        times.append(part.landed_at)
        job = pickle.loads(pickle.dumps(job))
    assert numbers == [1_001, 1_002, 2_000, 2_001, 2_002, 3_000]
    assert times == [*told]


def test_what_batches_say_of_the_next_ones_is_kept_and_may_be_lost(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    assert job.pace() == Pace()
    for pace in (Pace(1 << 20, {"größe": 120.5}), Pace(None, {"a": 1.0}, 0.25), Pace(7)):
        job.keep_pace(pace)
        assert pickle.loads(pickle.dumps(job)).pace() == pace
    for damaged in ("", "17", "[1", '{"a": 1}', '["x", {}, 0]', "[1, 2, 0]", "[1, {}]"):
        Path(job.pace_file).write_text(damaged, encoding="utf-8")
        assert job.pace() == Pace()


def test_a_job_shows_no_secret(tmp_path: Path) -> None:
    assert "hunter2" not in repr(job_in(tmp_path))
