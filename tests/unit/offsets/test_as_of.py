"""As of a time: every transaction of the source whole or not at all, whatever it looked like when
batches landed.

The model is Kafka's: partitions with logs, producers that write transactions over several of them,
markers that come to each partition at a time of its own, last stable offsets, and a landing that
asks for ends while all that goes on.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorlake.offsets.as_of import Cuts, LandedPart, OpenEnds, cut_as_of, noted_ends, read_ends
from mirrorlake.offsets.positions import TopicAndPartition

KEYS = [("t", 0), ("t", 1), ("u", 0)]
ENDS = {("größe", 0): 5, ("t", 1): 7}
STEPS = ("plain", "write", "write", "end", "marker", "marker", "ask", "ask", "part")


@dataclass
class Entry:
    """An offset of a log: a record, of a transaction or of none, or a marker."""

    stamp: int
    transaction: int | None = None
    marker: bool = False


@dataclass
class World:
    """Logs, and what was landed of them."""

    logs: dict[TopicAndPartition, list[Entry]] = field(
        default_factory=lambda: {key: [] for key in KEYS}
    )
    aborted: set[int] = field(default_factory=set)
    reached: dict[TopicAndPartition, int] = field(default_factory=lambda: dict.fromkeys(KEYS, 0))
    landed: dict[TopicAndPartition, list[tuple[int, int, int]]] = field(
        default_factory=lambda: {key: [] for key in KEYS}
    )
    batches: dict[int, OpenEnds | None] = field(default_factory=dict)
    now: int = 0

    def stable_end(self, key: TopicAndPartition) -> int:
        """The first record of a transaction that has no marker here yet, or the log's end."""
        log = self.logs[key]
        ended = {entry.transaction for entry in log if entry.marker}
        open_ = (
            offset
            for offset, entry in enumerate(log)
            if entry.transaction is not None and entry.transaction not in ended
        )
        return next(open_, len(log))

    def visible(self, key: TopicAndPartition, first: int, end: int) -> list[int]:
        """The offsets that a read_committed consumer gets."""
        log = self.logs[key]
        return [
            offset
            for offset in range(first, end)
            if not log[offset].marker
            and (log[offset].transaction is None or log[offset].transaction not in self.aborted)
        ]

    def land(
        self, ends: dict[TopicAndPartition, int], log_ends: dict[TopicAndPartition, int] | None
    ) -> None:
        """A batch up to these ends; `log_ends` None: it does not reach the ends of all, and notes
        nothing."""
        self.now += 1
        any_rows = False
        for key, end in ends.items():
            rows = self.visible(key, self.reached[key], end)
            if rows:
                any_rows = True
                self.landed[key] += [(offset, self.now, end) for offset in rows]
            self.reached[key] = max(end, self.reached[key])
        if any_rows:
            behind = {
                key: (ends[key], end) for key, end in (log_ends or {}).items() if end > ends[key]
            }
            self.batches[self.now] = None if log_ends is None else behind

    def parts(self, until: int) -> dict[TopicAndPartition, list[LandedPart]]:
        """As the tables tell it."""
        found: dict[TopicAndPartition, list[LandedPart]] = {}
        for key, rows in self.landed.items():
            for batch in sorted({row[1] for row in rows}):
                here = [row for row in rows if row[1] == batch]
                late = [
                    row[0] for row in here if batch > until and self.logs[key][row[0]].stamp > until
                ]
                found.setdefault(key, []).append(
                    LandedPart(
                        batch,
                        here[0][0],
                        here[-1][0],
                        len(here),
                        end=here[0][2],
                        late_first=min(late, default=None),
                    )
                )
        return found


@dataclass
class Producer:
    """Writes transactions one after another; a marker waits for its turn in each partition."""

    number: int
    transaction: int | None = None
    touched: set[TopicAndPartition] = field(default_factory=set)
    markers: list[tuple[int, TopicAndPartition]] = field(default_factory=list)


class Play:
    """What happens, drawn step by step."""

    def __init__(self, chance: Random, transactional: bool = True) -> None:
        self.world = World()
        self._chance = chance
        self._producers = [Producer(number) for number in range(3 if transactional else 0)]
        self._transactions = iter(range(10**6))
        self._asking: Iterator[None] | None = None

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._step()
        while self._asking is not None:
            self._land_on()

    def _step(self) -> None:
        self.world.now += 1
        what = self._chance.choice(STEPS)
        if what == "plain":
            self._append(self._chance.choice(KEYS), Entry(self._stamp()))
        elif what == "ask":
            self._land_on()
        elif what == "part" and self._asking is None:
            ends = {
                key: self._chance.randint(at, self.world.stable_end(key))
                for key, at in self.world.reached.items()
            }
            self.world.land(ends, None)
        elif self._producers:
            self._produce(self._chance.choice(self._producers), what)

    def _stamp(self) -> int:
        return self.world.now - self._chance.choice([0, 0, 0, 3, -3])

    def _append(self, key: TopicAndPartition, entry: Entry) -> None:
        self.world.logs[key].append(entry)

    def _produce(self, producer: Producer, what: str) -> None:
        if what == "marker" and producer.markers:
            transaction, key = producer.markers.pop(0)
            self._append(key, Entry(self.world.now, transaction, marker=True))
        elif producer.markers:
            return  # the coordinator lets nobody begin before all markers are written
        elif what == "write":
            if producer.transaction is None:
                producer.transaction, producer.touched = next(self._transactions), set()
            key = self._chance.choice(KEYS)
            producer.touched.add(key)
            self._append(key, Entry(self._stamp(), producer.transaction))
        elif what == "end" and producer.transaction is not None:
            if self._chance.random() < 0.3:
                self.world.aborted.add(producer.transaction)
            order = self._chance.sample(sorted(producer.touched), len(producer.touched))
            producer.markers = [(producer.transaction, key) for key in order]
            producer.transaction = None

    def _land_on(self) -> None:
        """The next question of a landing: first for each stable end, then for each log's."""
        self._asking = self._asking or self._questions()
        if next(self._asking, self) is self:
            self._asking = None

    def _questions(self) -> Iterator[None]:
        ends, log_ends = {}, {}
        for key in KEYS:
            ends[key] = self.world.stable_end(key)
            yield
        for key in KEYS:
            log_ends[key] = len(self.world.logs[key])
            yield
        self.world.land(ends, log_ends)


def split(world: World, ends: Mapping[TopicAndPartition, int]) -> set[int]:
    """The committed transactions that have records on both sides."""
    sides: dict[int, set[bool]] = {}
    for key, log in world.logs.items():
        end = ends.get(key, 0)
        for offset, entry in enumerate(log):
            if (
                entry.transaction is not None
                and not entry.marker
                and entry.transaction not in world.aborted
            ):
                sides.setdefault(entry.transaction, set()).add(offset < end)
    return {transaction for transaction, found in sides.items() if len(found) == 2}


@settings(max_examples=500, deadline=None)
@given(st.integers(0), st.integers(5, 150))
def test_a_transaction_is_whole_or_not_there(seed: int, steps: int) -> None:
    chance = Random(seed)
    play = Play(chance)
    play.run(steps)
    world = play.world
    for until in {chance.randint(0, world.now) for _ in range(5)}:
        parts = world.parts(until)
        cuts = cut_as_of(parts, world.batches, math.inf)
        if not cuts.unproven:  # else nothing that was noted is so old
            assert not split(world, cuts.ends)
        for key, end in cuts.ends.items():
            assert all(part.late_first is None or end <= part.late_first for part in parts[key])


@settings(max_examples=150, deadline=None)
@given(st.integers(0), st.integers(50, 150), st.integers(0, 10))
def test_where_that_lies_too_far_back_it_is_said(seed: int, steps: int, patience: int) -> None:
    """What is said to be whole is whole, whatever the patience; and no end is much older than it
    could be."""
    chance = Random(seed)
    play = Play(chance)
    play.run(steps)
    world = play.world
    parts = world.parts(chance.randint(0, world.now))
    cuts = cut_as_of(parts, world.batches, patience)
    late = [part.batch for found in parts.values() for part in found if part.late_first is not None]
    noted = [
        batch
        for batch, ends in world.batches.items()
        if ends is not None and batch < min(late, default=steps**2)
    ]
    assert not noted or (cuts.base is not None and max(noted) - cuts.base <= patience)
    if not cuts.unproven:
        assert not split(world, cuts.ends)


def test_the_model_has_cuts_that_matter() -> None:
    """Somewhere between nothing and all, with transactions on both sides."""
    found = 0
    for seed in range(100):
        play = Play(Random(seed))
        play.run(150)
        cuts = cut_as_of(play.world.parts(75), play.world.batches, math.inf)
        found += not cuts.unproven and any(
            0 < end < len(play.world.logs[key]) for key, end in cuts.ends.items()
        )
    assert found > 30


@settings(max_examples=150, deadline=None)
@given(st.integers(0), st.integers(5, 80))
def test_without_transactions_all_is_there_that_the_time_does_not_leave_out(
    seed: int, steps: int
) -> None:
    chance = Random(seed)
    play = Play(chance, transactional=False)
    play.run(steps)
    world = play.world
    for log in world.logs.values():
        log.append(Entry(world.now))
    ends = {key: len(log) for key, log in world.logs.items()}
    world.land(ends, ends)
    parts = world.parts(chance.randint(0, world.now))
    cuts = cut_as_of(parts, world.batches)
    assert not cuts.unproven
    for key, end in cuts.ends.items():
        late = [part.late_first for part in parts[key] if part.late_first is not None]
        assert end == min([*late, parts[key][-1].covered_end])


def test_nobody_noted_where_logs_ended() -> None:
    """Of old batches; a later one proves only what has no gap."""
    parts = {
        ("t", 0): [
            LandedPart(1, 0, 4, 5),
            LandedPart(2, 5, 9, 5, late_first=7),
            LandedPart(3, 10, 10, 1, 11),
        ],
        ("t", 1): [
            LandedPart(1, 0, 4, 5),
            LandedPart(2, 6, 9, 4),
            LandedPart(3, 10, 10, 1, 11, late_first=10),
        ],
    }
    batches = {1: None, 2: None, 3: None}
    ends = {("t", 0): 7, ("t", 1): 10}
    assert cut_as_of(parts, batches) == Cuts(ends, None, frozenset(ends))
    assert cut_as_of(parts, {**batches, 3: {}}) == Cuts(ends, None, frozenset({("t", 1)}))


def test_nothing_had_landed_by_then() -> None:
    """Records of before it, in a batch that has some of after it too: only what is no transaction
    is there."""
    parts = {
        ("t", 0): [LandedPart(1, 0, 9, 10, 11, late_first=4)],
        ("t", 1): [LandedPart(1, 0, 9, 10, 10, late_first=4)],
    }
    assert cut_as_of(parts, {1: {}}) == Cuts({("t", 0): 0, ("t", 1): 4})


def test_a_marker_that_is_missing_in_one_partition() -> None:
    """The transaction's marker has come to t-0, and not to t-1, when ends are asked for."""
    open_ends: OpenEnds = {("t", 1): (0, 2)}
    parts = {
        ("t", 0): [LandedPart(1, 0, 0, 1, 1), LandedPart(2, 1, 2, 2, 4)],
        ("t", 1): [LandedPart(3, 0, 1, 2, 3, late_first=0)],
    }
    assert cut_as_of(parts, {1: {}, 2: open_ends, 3: {}}) == Cuts({("t", 0): 1, ("t", 1): 0}, 1)
    plain = {**parts, ("t", 1): [LandedPart(3, 0, 1, 2, 2, late_first=1)]}
    assert cut_as_of(plain, {1: {}, 2: open_ends, 3: {}}) == Cuts({("t", 0): 4, ("t", 1): 1}, 2)


def test_only_what_went_on_is_noted() -> None:
    assert noted_ends(ENDS, {("größe", 0): 8, ("t", 1): 7, ("other", 0): 1}) == '[["größe",0,5,8]]'
    assert read_ends('[["größe",0,5,8]]') == {("größe", 0): (5, 8)}
    assert noted_ends(ENDS, ENDS) == "[]" and read_ends("[]") == {}
    assert read_ends(None) is None


def test_who_does_not_answer_leaves_all_unknown() -> None:
    assert noted_ends(ENDS, {("t", 1): 7}) is None
