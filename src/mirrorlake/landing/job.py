"""A landing query's job, and what planner, tasks and driver hand to each other. Needs no Spark."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorlake.kafka.client_settings import Settings
from mirrorlake.landing.pace import Pace
from mirrorlake.landing.ranges import shared_out
from mirrorlake.offsets.positions import Ranges, TopicAndPartition, offset_count

if TYPE_CHECKING:  # three processes import this, and each needs a part of the rest at most
    import pyarrow as pa

    from mirrorlake.lake.place import Place
    from mirrorlake.offsets.ranges import OffsetRanges


class BatchNumbers:
    """Numbers landed batches: by the time in ms, and always above the number before, at first above
    `newest`, the highest in the stage. A cut as of a time orders batches by number
    (`offsets/as_of.py`): by a clock that was set back, or that is behind the previous host's, later
    batches would come first."""

    def __init__(self, newest: int = -1) -> None:
        self._newest = newest

    def next(self, now: int) -> int:
        """The number of a batch that begins at a time."""
        self._newest = max(now, self._newest + 1)
        return self._newest


@dataclass(frozen=True)
class Part:
    """What one task reads of a batch, and what all of its rows share. `landed_at` is in ms, `batch`
    the batch's number (`BatchNumbers`); `generations` are those other than 0; `ends` are the
    offsets up to which the batch covers each partition, exclusive, and `open_ends` its note of logs
    that go on behind (`offsets/as_of.py`). `small_answers`: see `kafka.log.open_log`."""

    source_cluster: str
    landed_at: int
    batch: int
    generations: Mapping[TopicAndPartition, int]
    ends: Mapping[TopicAndPartition, int] = field(default_factory=dict)
    open_ends: str | None = None
    ranges: Ranges = field(default_factory=dict)
    small_answers: bool = False

    def columns(self, key: TopicAndPartition) -> dict[str, object]:
        """The columns that all rows of a partition have in common."""
        return {
            "source_cluster": self.source_cluster,
            "topic": key[0],
            "landed_at": self.landed_at * 1_000,
            "batch_id": self.batch,
            "generation": self.generations.get(key, 0),
            "batch_end": self.ends.get(key),
            "open_ends": self.open_ends,
        }


@dataclass(frozen=True)
class LandJob:
    """What a query reads, and how. `client` holds secrets: it travels with pickled sources and
    tasks, never as an option.

    `starts` and `final` are offsets by partition; without `final` the query reads on for ever.
    `final_noted` is the note of the batch that reaches `final` (offsets/as_of.py). `waiting` are
    partitions that wait for others, `waiting_seconds` at most. A batch has `max_records` at most
    and `tasks` parts. One begins every `trigger_seconds` at most; a small one, in a store where
    commits take long, up to `apart_seconds` after the one before it. A batch of
    `small_batch_records` needs no task, or one (`tasks_for`). Tasks write files of `schema` into
    `directory`, that of the table `records`; without one they hand over rows. `forgotten`
    (inclusive) is left out. `pace_file`: see `pace`. `numbers` gives batches their numbers.
    """

    alias: str
    client: Settings
    starts: Mapping[TopicAndPartition, int]
    generations: Mapping[TopicAndPartition, int]
    schema: "pa.Schema"
    directory: "Place | None"
    pace_file: str
    max_records: int
    tasks: int
    trigger_seconds: float = 0.0
    apart_seconds: float = 0.0
    small_batch_records: int = 0
    waiting: frozenset[TopicAndPartition] = frozenset()
    waiting_seconds: float = 0.0
    final: Mapping[TopicAndPartition, int] | None = None
    final_noted: str | None = None
    forgotten: Mapping[TopicAndPartition, "OffsetRanges"] = field(default_factory=dict)
    numbers: BatchNumbers = field(default_factory=BatchNumbers, compare=False)

    def tasks_for(self, ranges: Ranges) -> int:
        """How many tasks read a batch if they hand over rows: one for a small batch, since each
        task costs more than so few records, and makes a file of its own."""
        return 1 if self.is_small(ranges) else self.tasks

    def is_small(self, ranges: Ranges) -> bool:
        """Whether a batch has few enough offsets to be a small one."""
        return offset_count(ranges) <= self.small_batch_records

    def parts(self, ranges: Ranges, noted: str | None, tasks: int, pace: Pace) -> list[Part]:
        """Share out a batch that begins now over tasks; `noted` is its note of the ends of logs,
        `pace` is learned from the batches before it."""
        now = time.time_ns() // 1_000_000
        batch = self.numbers.next(now)
        return [
            Part(
                self.alias,
                now,
                batch,
                {key: self.generations[key] for key in own if key in self.generations},
                ends={key: ranges[key][1] for key in own},
                open_ends=noted,
                ranges=own,
                small_answers=pace.in_small_answers,
            )
            for own in shared_out(dict(sorted(ranges.items())), tasks, pace.record_bytes)
        ]

    def pace(self) -> Pace:
        """The pace that was kept. The process that learns how long batches took keeps it in a file,
        so that a new query over a slow link begins where the one before was. At a path that is the
        driver, which commits, and its planner, a process beside it, reads the file; elsewhere it is
        the planner, which sees when the next batch is asked for. The pace only gives batches the
        right size: if the file is missing or damaged, nothing is known."""
        try:
            limit, sizes, commit = json.loads(Path(self.pace_file).read_text(encoding="utf-8"))
            return Pace(None if limit is None else int(limit), dict(sizes), float(commit))
        except (FileNotFoundError, ValueError, TypeError):
            return Pace()

    def keep_pace(self, pace: Pace) -> None:
        """Keep it, for the next batches and for queries to come."""
        from mirrorlake.lake.place import FolderPlace  # only the process that keeps it needs it

        text = json.dumps([pace.limit, pace.record_bytes, pace.commit_seconds])
        FolderPlace(self.pace_file).write(text.encode())

    def __repr__(self) -> str:
        return f"LandJob({self.alias}, {len(self.starts)} partitions)"
