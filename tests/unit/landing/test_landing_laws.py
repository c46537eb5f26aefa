"""Landing's laws over random histories of a source: what it has is staged, once, and what is lost
has been told.

The planner runs against a source and a stage in memory (`test_landing_plan.Model`). The source
writes, trims its logs, loses their ends, changes leaders, adds partitions and makes topics again,
between any two steps of landing; processes die, and forget what is not in the lake.
"""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mirrorlake.landing.source_comparison import (
    Branch,
    CurrentGenerations,
    Decision,
    TopicGeneration,
)
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from tests.support.landing_model import Log, Model

KEYS = st.sampled_from([("t", 0), ("t", 1), ("u", 0)])
COUNTS = st.integers(1, 9)


class LandingLaws(RuleBasedStateMachine):
    """One source, landed by one process after another."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model({("t", 0): Log(), ("u", 0): Log()}, {"t": "t0", "u": "u0"})
        self.planner = self.model.planner()
        self.covered: dict[TopicAndPartition, int] = {}
        self.covered_in = CurrentGenerations()
        self.number = 0
        self.trimmed: dict[TopicAndPartition, set[int]] = {}
        self.told: dict[TopicAndPartition, set[int]] = {}

    @rule(key=KEYS, count=COUNTS)
    def write(self, key: TopicAndPartition, count: int) -> None:
        if key in self.model.logs:
            self.number += 1
            self.model.logs[key].write(f"{self.number}:", count)

    @rule()
    def add_partition(self) -> None:
        self.model.logs.setdefault(("t", 1), Log())

    @rule(key=KEYS, part=st.integers(0, 9))
    def trim(self, key: TopicAndPartition, part: int) -> None:
        """Of what was landed before, or was owed since, it is noted what went unread."""
        if key in self.model.logs:
            log = self.model.logs[key]
            before = {row.offset for row in log.rows}
            log.truncate(log.start + (log.end - log.start) * part // 9)
            gone = before - {row.offset for row in log.rows}
            if self._is_landed(key) or self._is_made_again(key[0]):
                self.trimmed.setdefault(key, set()).update(
                    at for at in gone if not self._has(key, at)
                )

    @rule(key=KEYS, back=COUNTS, written=st.integers(0, 12))
    def lose_the_end(self, key: TopicAndPartition, back: int, written: int) -> None:
        if key in self.model.logs:
            log = self.model.logs[key]
            log.rewind(max(log.start, log.end - back))
            self.trimmed.pop(key, None)  # what was above the new end is nobody's any more
            self.write(key, written) if written else None

    @rule(key=KEYS)
    def elect(self, key: TopicAndPartition) -> None:
        if key in self.model.logs:
            self.model.logs[key].epoch += 1

    @rule(topic=st.sampled_from(["t", "u"]))
    def make_again(self, topic: str) -> None:
        """What is there now is of another generation, which begins when it is decided so. What it
        loses until then is owed, too."""
        self.number += 1
        self.model.ids[topic] = f"{topic}{self.number}"
        for key in [key for key in self.model.logs if key[0] == topic]:
            self.model.logs[key] = Log()
            self.trimmed.pop(key, None)
            self.told.pop(key, None)

    @rule(limit=st.integers(1, 30), keys=st.sets(KEYS))
    def land(self, limit: int, keys: set[TopicAndPartition]) -> None:
        """A query that comes up to `limit` records far in some partitions, then ends."""
        planned = self.planner.plan(self.covered, self.covered_in)
        self.covered, self.covered_in = dict(planned.covered), planned.current_generations
        for loss in (*planned.losses, *planned.given_up):
            given = loss in planned.given_up
            self.model.told.append(
                Decision(
                    loss.topic,
                    loss.partition,
                    loss.kind,
                    last_offset=loss.last,
                    open=not given,
                    resolution="continue" if given else None,
                )
            )
            self.firsts[loss.topic, loss.partition] = loss.first
            if loss.kind == "source_truncated":
                assert (
                    loss.partition is not None and loss.first is not None and loss.last is not None
                )
                self.told.setdefault((loss.topic, loss.partition), set()).update(
                    range(loss.first, loss.last + 1)
                )
        for key, first in planned.plan.starts.items():
            if key in keys:
                self._read(
                    key,
                    first,
                    min(self.model.logs[key].end, first + limit),
                    planned.plan.generations,
                )

    @rule(choice=st.sampled_from(["continue", "new-generation"]))
    def decide(self, choice: str) -> None:
        offered = {
            "topic_recreated": "new-generation",
            "source_truncated": "continue",
            "source_rewound": "new-generation",
        }
        deciding = [item for item in self.model.told if item.open and offered[item.kind] == choice]
        self.model.told = [
            replace(item, open=False, resolution=choice) if item in deciding else item
            for item in self.model.told
        ]
        begun = {item.topic for item in deciding if item.kind == "topic_recreated"}
        for topic in sorted(begun):
            self._begin(topic)
        for item in deciding:
            if item.kind == "source_rewound" and item.topic not in begun:
                assert item.partition is not None
                self._branch((item.topic, item.partition))

    @rule(epochs_too=st.booleans())
    def die(self, epochs_too: bool) -> None:
        """What is only in the process is lost; samples have said how far it came."""
        for key, end in self.covered.items():
            self.model.samples[PartitionGeneration(*key, self.covered_in.generation(key))] = end
        self.planner, self.covered = self.model.planner(), {}
        if epochs_too:
            self.model.leaders = {}

    @invariant()
    def nothing_that_was_trimmed_unread_is_passed_in_silence(self) -> None:
        for key, offsets in self.trimmed.items():
            if not self._is_of_now(key[0]):
                continue  # it waits
            branch = self.model.known.branches.get(key)
            passed = [
                at
                for at in offsets
                if self._has_above(key, at) and (branch is None or at >= branch.first)
            ]
            assert set(passed) <= self.told.get(key, set()), (key, passed)

    def teardown(self) -> None:
        """Everything is decided, and landed: what the source has is staged."""
        for _ in range(8):
            self.land(10_000, {("t", 0), ("t", 1), ("u", 0)})
            self.decide("continue")
            self.decide("new-generation")
        assert not any(item.open for item in self.model.told)
        for key, log in self.model.logs.items():
            for row in log.rows:
                assert self._same(key, row.offset, row.value), (key, row)

    @property
    def firsts(self) -> dict[tuple[str, int | None], int | None]:
        return self.__dict__.setdefault("_firsts", {})

    def _read(
        self,
        key: TopicAndPartition,
        first: int,
        end: int,
        generations: Mapping[TopicAndPartition, int],
    ) -> None:
        staged = self.model.staged.setdefault((*key, generations.get(key, 0)), {})
        for row in self.model.logs[key].rows:
            if first <= row.offset < end:
                assert row.offset not in staged, f"{key}: offset {row.offset} is staged twice"
                assert not staged or row.offset > max(staged), (
                    f"{key}: {row.offset} behind {max(staged)}"
                )
                staged[row.offset] = row
        if not staged:
            del self.model.staged[(*key, generations.get(key, 0))]
        self.covered[key] = end

    def _begin(self, topic: str) -> None:
        current = self.model.known
        generation = TopicGeneration(current.newest(topic) + 1, self.model.ids[topic])
        branches = {key: branch for key, branch in current.branches.items() if key[0] != topic}
        self.model.known = CurrentGenerations({**current.topics, topic: generation}, branches)
        self.model.told = [item for item in self.model.told if item.topic != topic]

    def _branch(self, key: TopicAndPartition) -> None:
        current, first = self.model.known, self.firsts[key]
        assert first is not None
        branches = {**current.branches, key: Branch(current.generation(key) + 1, first)}
        self.model.known = CurrentGenerations(current.topics, branches)
        self.model.told = [
            item for item in self.model.told if item.open or (item.topic, item.partition) != key
        ]

    def _is_landed(self, key: TopicAndPartition) -> bool:
        """Whether something was landed, or covered, of the log that is there."""
        if not self._is_of_now(key[0]):
            return False
        generation = self.model.known.generation(key)
        covered = key in self.covered and self.covered_in.generation(key) == generation
        return covered or (*key, generation) in self.model.staged

    def _is_of_now(self, topic: str) -> bool:
        """Whether the newest generation of a topic is of the one that is there."""
        known = self.model.known.topics.get(topic)
        return known is not None and known.topic_id == self.model.ids[topic]

    def _is_made_again(self, topic: str) -> bool:
        """Whether the topic that is there took the place of one that was landed."""
        known = self.model.known.topics.get(topic)
        return known is not None and (known.generation > 0 or not self._is_of_now(topic))

    def _has(self, key: TopicAndPartition, offset: int) -> bool:
        """Whether an offset of the log that is there is staged: below where a partition began a
        generation by itself it is the same log."""
        if not self._is_of_now(key[0]):
            return False
        since = self.model.known.topics[key[0]].generation
        return any(
            offset in rows
            for (*place, generation), rows in self.model.staged.items()
            if tuple(place) == key and generation >= since
        )

    def _has_above(self, key: TopicAndPartition, offset: int) -> bool:
        return any(
            at > offset
            for at in self.model.staged.get((*key, self.model.known.generation(key)), ())
        )

    def _same(self, key: TopicAndPartition, offset: int, value: bytes | None) -> bool:
        return any(
            offset in rows and rows[offset].value == value
            for (*place, _), rows in self.model.staged.items()
            if tuple(place) == key
        )


TestLandingLaws = LandingLaws.TestCase
TestLandingLaws.settings = settings(max_examples=200, stateful_step_count=25, deadline=None)
