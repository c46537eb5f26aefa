"""Where the next batch of a job ends, and when it begins."""

from pathlib import Path

import pytest

from mirrorlake.lake.place import Place, place_of
from mirrorlake.landing import batch_planner
from mirrorlake.landing.batch_planner import BatchPlanner
from mirrorlake.landing.pace import Pace
from mirrorlake.offsets.positions import Ends, TopicAndPartition
from tests.support.landing import StoppedClock, job_in

STARTS = {("a", 0): 5, ("a", 1): 0, ("b", 0): 7}


class LogEnds:
    """The ends of logs, as a test says."""

    known_ends: dict[TopicAndPartition, int]

    def known(self, _reached: object) -> dict[TopicAndPartition, int]:
        return dict(self.known_ends)

    def noted(self, _ends: object, _log_ends: object) -> str | None:
        return None


def test_where_commits_take_long_few_records_wait_for_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what comes all the time; the first record behind a rest waits for nothing, nor does what
    is no small batch."""
    clock, ends, reached = StoppedClock(), LogEnds(), dict[BatchPlanner, Ends]()
    monkeypatch.setattr(batch_planner, "time", clock)
    given = {"trigger_seconds": 0.35, "apart_seconds": 1.0, "small_batch_records": 20_000}

    def planner_in(directory: Place) -> BatchPlanner:
        job = job_in(tmp_path, starts=STARTS, directory=directory, max_records=10**6, **given)
        planner = BatchPlanner(job)
        planner._ends = ends  # type: ignore[assignment]
        reached[planner] = STARTS
        return planner

    def begins_at(planner: BatchPlanner, rising: int, ticks: int) -> list[int]:
        """The ticks of the trigger with a batch, while each has so many more records."""
        ticked = list[int]()
        for tick in range(ticks):
            ends.known_ends = {key: end + rising for key, end in ends.known_ends.items()}
            clock.now += 0.35
            batch = planner.next(reached[planner], pace, 10**6)
            if batch is not None:
                ticked.append(tick)
                reached[planner] = batch.end
        return ticked

    ends.known_ends = dict(STARTS)
    pace = Pace().after_commits([0.2] * 9)
    planner = planner_in(place_of("s3://bucket/lake"))
    assert begins_at(planner, 1, 10) == [0, 3, 6, 9]
    clock.now += 60.0
    assert begins_at(planner, 1, 4)[0] == 0, "behind a rest"
    assert begins_at(planner, 20_000, 3) == [0, 1, 2], "no small ones"
    pace = Pace().after_commits([0.01] * 9)
    clock.now += 0.35
    assert begins_at(planner, 1, 3) == [0, 1, 2], "a store that is quick"
    ends.known_ends, pace = dict(STARTS), Pace().after_commits([0.2] * 9)
    assert begins_at(planner_in(place_of(tmp_path)), 1, 3) == [0, 1, 2], "a folder that is slow"
