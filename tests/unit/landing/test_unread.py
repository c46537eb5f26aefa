"""What queries have staged around is told, and landed again once."""

import shutil
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorlake.config.cluster import Landing
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import IncidentKey
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing import sinks, unread
from mirrorlake.landing.checkpoints import end_queries, keep_read, left_queries
from mirrorlake.landing.gaps import LeftQuery, doubtful
from mirrorlake.landing.landing_incidents import LandingIncidents
from mirrorlake.landing.source_comparison import CurrentGenerations, TopicGeneration
from mirrorlake.landing.unread import UnreadOffsets
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import LogEnds, Ranges, TopicAndPartition
from mirrorlake.offsets.stage_index import StageIndex
from tests.support.lake_rows import append, no_session, opened, staged, write_file
from tests.support.landing import rows

KEY, OTHER = ("orders", 0), ("orders", 1)
CLIENT = {"bootstrap.servers": "nowhere:1"}


def index_of(*ranges: tuple[int, int, int, int]) -> StageIndex:
    """Staged ranges of `t-0`: generation, first, last, count."""
    index = StageIndex()
    index.apply(
        [(str(n), [StagedRange("east", "t", 0, *one)]) for n, one in enumerate(ranges)], (), 1
    )
    return index


@pytest.mark.parametrize(
    ("staged_ranges", "found"),
    [
        ([], None),  # the next query begins there
        ([(0, 0, 4, 5)], None),
        ([(0, 0, 4, 5), (0, 5, 19, 15)], None),
        ([(0, 0, 3, 1), (0, 5, 9, 5), (0, 10, 14, 5)], None),  # what lies in front was read
        ([(0, 0, 4, 5), (0, 10, 19, 10)], (5, 20)),
        ([(0, 5, 9, 5), (0, 15, 17, 3)], (5, 18)),
        ([(0, 5, 19, 14)], (5, 20)),
        ([(0, 0, 19, 20)], (5, 20)),  # files were put together: the source is asked
        ([(0, 5, 9, 5), (1, 0, 19, 2)], None),
        ([(1, 0, 19, 2)], None),
    ],
)
def test_a_hole_is_where_less_is_staged_than_offsets_in_front_of_what_is_staged(
    staged_ranges: list[tuple[int, int, int, int]], found: tuple[int, int] | None
) -> None:
    left = [LeftQuery("q", {("t", 0): 5}, {}), LeftQuery("r", {("t", 1): 3}, {})]
    index = index_of(*staged_ranges)
    assert doubtful(index, "east", left) == ({("t", 0, 0): found} if found else {})
    assert doubtful(index, "west", left) == {}


class World:
    """A stage with `orders-0`, a source that has more, and who makes up for it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake: Lake = opened(no_session, write_file(folder))[0]
        self.source = set(range(0, 40))
        self.start = 0
        self.refused: tuple[TopicAndPartition, ...] = ()
        self.leaderless: tuple[TopicAndPartition, ...] = ()
        log = EventLog(self.lake)
        self.stage = StageFiles(self.lake)
        incidents = LandingIncidents("east", log)
        self.unread = UnreadOffsets("east", self.lake, self.stage, incidents)
        monkeypatch.setattr(unread, "read_ranges", lambda _a, _c, ranges: self.read(ranges))
        monkeypatch.setattr(sinks, "open_log", lambda *_, **__: self)

    def read(self, ranges: Ranges) -> Iterator[tuple[TopicAndPartition, pa.RecordBatch]]:
        if any(key in self.refused for key in ranges):
            raise KafkaException(KafkaError(KafkaError._BAD_MSG, "a batch is damaged"))
        for key, (first, end) in ranges.items():
            there = [offset for offset in range(first, end) if offset in self.source]
            if there:
                yield key, rows(key[1], there)

    def keep_prefetched(self, _keys: object) -> None: ...

    def pause(self) -> None: ...

    def close(self) -> None: ...

    def leave(self, ends: Mapping[TopicAndPartition, int], name: str = "q") -> None:
        """A query that has read up to some ends."""
        keep_read(self.lake, "east", self.lake.checkpoints / "land" / "east" / name, ends, {})
        end_queries(self.lake, "east")

    def make_up(self) -> None:
        ids = CurrentGenerations({"orders": TopicGeneration(0, "id")})
        planned: Any = SimpleNamespace(
            plan=SimpleNamespace(starts=dict.fromkeys({KEY, OTHER} - {*self.leaderless}, 40)),
            refused=dict.fromkeys(self.leaderless, "the partition has no leader"),
            current_generations=ids,
            log=dict.fromkeys((KEY, OTHER), LogEnds(self.start, 40)),
        )
        flows: Any = [("east->west", SimpleNamespace(selects=lambda topic: topic == "orders"))]
        self.unread.make_up(planned, flows, Landing(), CLIENT)

    def offsets(self) -> list[int]:
        return sorted(row["offset"] for row in self.lake.now.table_rows("records"))

    def gaps(self) -> list[tuple[str, int, int]]:
        found = self.lake.now.table_rows("open_incidents")
        return [(row["kind"], row["first_offset"], row["last_offset"]) for row in found]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake's folder: to make its tables takes seconds."""
    folder = tmp_path_factory.mktemp("empty")
    opened(no_session, write_file(folder))
    return folder


@pytest.fixture
def world(empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    shutil.copytree(empty, tmp_path, dirs_exist_ok=True)
    return World(tmp_path, monkeypatch)


def test_what_a_dead_process_has_staged_around_is_told_and_landed_once(world: World) -> None:
    """Delta has committed, and the process died before it was known what tasks had read."""
    append(world.lake, "records", staged([*range(0, 10), *range(20, 30)]))
    world.leave({KEY: 5})
    for _ in range(2):
        world.make_up()
        assert world.offsets() == [*range(0, 30)], "what lies behind is the next query's"
        assert world.gaps() == [("landing_gap", 10, 19)]
        assert "left out 10 records" in str(world.unread.reported)
        assert left_queries(world.lake, "east") == []
        world.leave({KEY: 5})


def test_gaps_that_the_source_has_too_are_none(world: World) -> None:
    """Markers of transactions, and what was compacted away."""
    world.source = set(range(0, 40, 2))
    append(world.lake, "records", staged([*range(0, 30, 2)]))
    world.leave({KEY: 0})
    world.make_up()
    assert world.offsets() == [*range(0, 30, 2)] and world.gaps() == []
    assert world.unread.reported is None
    assert left_queries(world.lake, "east") == []


def test_among_gaps_what_is_missing_is_landed_and_nothing_else(world: World) -> None:
    world.source = set(range(0, 40, 2))
    append(world.lake, "records", staged([*range(0, 10, 2), 16, *range(20, 30, 2)]))
    world.leave({KEY: 0})
    world.make_up()
    assert world.offsets() == [*range(0, 30, 2)]
    assert world.gaps() == [("landing_gap", 10, 18)]


def test_what_was_deleted_by_predicate_stays_deleted(world: World) -> None:
    append(world.lake, "records", staged([*range(0, 10), *range(20, 30)]))
    place = {"source_cluster": "east", "topic": "orders", "partition": 0, "generation": 0}
    offsets = {"first_offset": 10, "last_offset": 16, "record_count": 7}
    noted = {"forget_id": "f", "noted_at": datetime.now(timezone.utc)}
    append(world.lake, "forgotten", [{**place, **offsets, **noted}])
    world.leave({KEY: 0})
    world.make_up()
    assert world.offsets() == [*range(0, 10), *range(17, 30)]
    assert world.gaps() == [("landing_gap", 17, 19)]


@pytest.mark.parametrize("why", ["trimmed", "refused"])
def test_what_the_source_does_not_tell_is_an_incident_by_name(world: World, why: str) -> None:
    """And holds nothing else up."""
    append(world.lake, "records", staged([*range(0, 10), *range(20, 30)]))
    world.leave({KEY: 5})
    world.start, world.refused = (12, ()) if why == "trimmed" else (0, (KEY,))
    world.make_up()
    assert world.offsets() == [*range(0, 10), *range(20, 30)]
    assert world.gaps() == [("landing_gap", 5, 29)]
    assert left_queries(world.lake, "east") == []


def test_what_one_partition_does_not_tell_is_no_answer_about_the_others(world: World) -> None:
    """Theirs were given up with it: no query reads again what lies in front of staged records."""
    for partition in (0, 1):
        there = [*range(0, 10), *range(20, 30)]
        append(world.lake, "records", staged(there, partition=partition))
    world.leave({KEY: 5, OTHER: 5})
    world.refused = (KEY,)
    world.make_up()
    rows_there = world.lake.now.table_rows("records")
    offsets = sorted(row["offset"] for row in rows_there if row["partition"] == 1)
    assert offsets == [*range(0, 30)]
    assert sorted(world.gaps()) == [("landing_gap", 5, 29), ("landing_gap", 10, 19)]


def test_what_cannot_be_read_for_now_is_compared_once_it_can_be(world: World) -> None:
    """It was given up for good, with an incident that never closes, for a leader that was away
    while the process began."""
    for partition in (0, 1):
        there = [*range(0, 10), *range(20, 30)]
        append(world.lake, "records", staged(there, partition=partition))
    world.leave({KEY: 5, OTHER: 5})
    world.leave({OTHER: 5}, "r")
    world.leaderless = (KEY,)
    for _ in range(2):
        world.make_up()
        assert world.gaps() == [("landing_gap", 10, 19)], "of the other one"
        assert [query.name for query in left_queries(world.lake, "east")] == ["q"]
    world.leaderless = ()
    world.make_up()
    assert world.offsets() == sorted([*range(0, 30)] * 2) and len(world.gaps()) == 2
    assert left_queries(world.lake, "east") == []


def out_of_room(*_: object, **__: object) -> None:
    raise OSError("no space left on device")


def test_who_dies_once_it_was_told_lands_it_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(world.lake, "records", staged([*range(0, 10), *range(20, 30)]))
    world.leave({KEY: 5})
    with monkeypatch.context() as dying:
        dying.setattr(unread, "land_again", out_of_room)
        with pytest.raises(OSError):
            world.make_up()
    assert world.gaps() == [("landing_gap", 10, 19)] and len(world.offsets()) == 20
    world.make_up()
    assert world.offsets() == [*range(0, 30)] and world.gaps() == [("landing_gap", 10, 19)]


def test_each_gap_of_a_partition_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while one before it is open, which names other offsets: a flow may lack these, too."""
    append(world.lake, "records", staged([*range(0, 10), *range(20, 30)]))
    world.leave({KEY: 5})
    world.make_up()
    append(world.lake, "records", staged(range(35, 40)))
    world.leave({KEY: 30}, "r")
    with monkeypatch.context() as dying:
        dying.setattr(unread, "land_again", out_of_room)
        with pytest.raises(OSError):
            world.make_up()
    world.make_up()
    assert world.offsets() == [*range(0, 40)]
    assert sorted(world.gaps()) == [("landing_gap", 10, 19), ("landing_gap", 30, 34)]
    key = IncidentKey("east->west", "landing_gap", "orders", 0)
    EventLog(world.lake).incidents.settle_all([key], "acknowledge")
    assert world.gaps() == []
