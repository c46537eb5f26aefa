"""Positions that groups are moved to: within what is there at the goal, of what the map says."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.groups.logs import LogStarts
from mirrorlake.groups.moves import MoveResult, mark_synced, standing_of
from mirrorlake.groups.readable import Sides, bounded, readable_positions
from mirrorlake.groups.sync_plan import HAS_READ_ON
from mirrorlake.offsets.known_offsets import STARTS_SECONDS
from mirrorlake.offsets.positions import (
    Committed,
    LogEnds,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)

ORDERS = ("orders", 0)
MIRROR = ("east.orders", 0)


@dataclass
class World:
    """A partition whose record at offset n is, if it was mirrored, at n + `shift` of its mirror."""

    mapped: int
    source: LogEnds
    mirror: LogEnds | None
    shift: int = 0
    done: int | None = None
    asked_origin: int = 0

    def translate(
        self, asked: Collection[TopicPartitionOffset]
    ) -> dict[TopicPartitionOffset, Translated]:
        done = self.mapped if self.done is None else self.done
        return {
            key: Translated(
                *MIRROR,
                offset=min(key[2], self.mapped) + self.shift,
                exact=key[2] <= done,
                ahead=key[2] < self.mapped,
                end=self.mapped,
            )
            for key in asked
        }

    def origin(self, offset: int) -> dict[TopicAndPartition, int]:
        self.asked_origin += 1
        return {ORDERS: offset}

    def logs(self, wanted: Collection[TopicAndPartition]) -> Mapping[TopicAndPartition, LogEnds]:
        assert set(wanted) == {MIRROR}
        return {} if self.mirror is None else {MIRROR: self.mirror}

    @property
    def sides(self) -> Sides:
        return Sides(
            self.translate,
            lambda _: self.origin(self.source.start),
            lambda _: self.origin(self.source.end),
            self.logs,
        )

    def at(self, position: int) -> Translated:
        return readable_positions({(*ORDERS, position)}, self.sides)[(*ORDERS, position)]


WHOLE = World(1_000, LogEnds(0, 1_000), LogEnds(0, 1_001))


def test_what_is_all_there_is_as_the_map_says_and_the_origin_is_not_asked() -> None:
    world = replace(WHOLE)
    assert world.at(100) == Translated(*MIRROR, 100, True, True, end=1_000)
    assert world.asked_origin == 0


@pytest.mark.parametrize(
    ("source_start", "gone"), [(0, 400), (100, 400), (300, 200), (500, 0), (700, 0), (1_000, 0)]
)
def test_what_the_mirror_lost_counts_as_far_as_the_source_has_it(
    source_start: int, gone: int
) -> None:
    world = replace(WHOLE, source=LogEnds(source_start, 1_000), mirror=LogEnds(500, 1_001))
    found = world.at(100)
    assert (found.offset, found.exact, found.gone) == (500, True, gone)


def test_markers_at_the_end_are_no_records_that_are_gone() -> None:
    """A mirror that has wholly expired begins behind the marker of its last transaction."""
    world = replace(WHOLE, mirror=LogEnds(1_001, 1_001))
    assert (world.at(1_000).offset, world.at(1_000).gone) == (1_001, 0)
    assert (world.at(998).offset, world.at(998).gone) == (1_001, 3)


def test_a_position_behind_all_that_there_is_leads_to_the_end() -> None:
    found = replace(WHOLE).at(1_500)
    assert (found.offset, found.exact, found.past) == (1_000, True, 1_000)
    late = replace(WHOLE, mapped=800).at(1_500)
    assert (late.offset, late.exact, late.past) == (800, False, 1_000)
    standing = standing_of(("g", *ORDERS), Committed(1_500), late)
    assert (standing.again, standing.is_whole) == (200, False), (
        "what the mirror lacks of what is there"
    )
    assert replace(WHOLE, mapped=800).at(900).past is None


def test_a_position_behind_the_log_of_the_goal_leads_to_its_end() -> None:
    found = replace(WHOLE, mirror=LogEnds(0, 600)).at(900)
    assert (found.offset, found.cut) == (600, 300)
    assert not standing_of(("g", *ORDERS), Committed(900), found).is_whole


def test_a_position_that_was_written_down_is_one_that_is_there_too() -> None:
    """Of a log that the source has no more the map says nothing: only the checkpoint does."""
    world = World(100, LogEnds(0, 100), LogEnds(50, 100))
    found = {
        "ahead": Translated(*MIRROR, 30, True),
        "nothing behind": Translated(*MIRROR, 30, True, ahead=False),
    }
    there = bounded(found, world.sides)
    assert {name: (item.offset, item.gone) for name, item in there.items()} == {
        "ahead": (50, 20),
        "nothing behind": (50, 0),
    }
    assert world.asked_origin == 0 and bounded({}, world.sides) == {}


def test_of_a_mirror_that_does_not_answer_nothing_is_changed() -> None:
    assert replace(WHOLE, mirror=None).at(100).offset == 100


@given(
    st.integers(0, 30),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 5),
)
def test_a_consumer_can_read_from_it_and_nothing_that_is_there_is_skipped(
    position: int, mapped: int, start: int, source_start: int, shift: int
) -> None:
    log = LogEnds(start, max(start, mapped + shift))
    world = World(mapped, LogEnds(source_start, max(source_start, 20)), log, shift)
    found = world.at(position)
    assert log.start <= found.offset <= log.end
    unread = range(min(position, mapped) + shift, mapped + shift)
    assert not [offset for offset in unread if log.start <= offset < found.offset]
    missed = [offset for offset in unread if offset < log.start and offset - shift >= source_start]
    assert found.gone >= len(missed)
    assert bool(found.gone) == bool(missed)


def test_a_group_that_reads_on_missed_nothing() -> None:
    """Retention goes on behind it."""
    world = replace(WHOLE, mirror=LogEnds(500, 1_001))
    standing = standing_of(("g", *ORDERS), Committed(100), world.at(100))
    assert MoveResult(standing, "there", Committed(500)).is_left, (
        "it was brought there, and nobody was told"
    )
    assert not MoveResult(standing, "there", Committed(700), HAS_READ_ON).is_left
    known = {standing.checkpoint.group_partition: replace(standing.checkpoint, synced=True)}
    later = standing_of(
        ("g", *ORDERS), Committed(100), replace(world, mirror=LogEnds(600, 1_001)).at(100)
    )
    assert mark_synced([later], known, False)[0].checkpoint.synced


class Admin:
    """A cluster with one partition of a mirror."""

    def __init__(self) -> None:
        self.start = 0
        self.asked: list[set[TopicAndPartition]] = []

    def topics(self) -> dict[str, object]:
        return {MIRROR[0]: replace_partitions()}

    def start_offsets(
        self, wanted: Collection[TopicAndPartition], skip_silent: bool
    ) -> dict[TopicAndPartition, int]:
        self.asked.append(set(wanted))
        return dict.fromkeys(wanted, self.start)


def replace_partitions() -> object:
    return type("Info", (), {"partitions": 1})()


def test_starts_are_asked_for_once_a_minute() -> None:
    admin, now = Admin(), [0.0]
    starts = LogStarts(admin, lambda: now[0])  # type: ignore[arg-type]
    wanted = {MIRROR, ("elsewhere", 0)}
    assert starts.offsets_of(wanted) == {MIRROR: 0}
    admin.start = 9
    assert starts.offsets_of(wanted) == {MIRROR: 0}
    now[0] = STARTS_SECONDS
    assert starts.offsets_of(wanted) == {MIRROR: 9}
    assert [asked for asked in admin.asked if asked] == [{MIRROR}, {MIRROR}]
