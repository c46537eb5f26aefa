"""Planning by what moved finds what planning of everything finds, whatever became of the stage."""

import random
from collections import defaultdict
from dataclasses import replace

import pytest

from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import NOTHING_MAPPED, Floor
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.batch import BatchPlan, plan_batch
from mirrorlake.produce.flow_state import Upcoming

KEYS = [(topic, number) for topic in ("a", "b", "orders") for number in range(3)]


class History:
    """A stage of two clusters to which things happen, and a flow that follows it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.index, self.files = StageIndex(), dict[str, list[StagedRange]]()
        self.ends: dict[tuple[str, TopicAndPartition], int] = defaultdict(int)
        self.generation: dict[TopicAndPartition, int] = defaultdict(int)
        self.floors: dict[TopicAndPartition, Floor] = {}
        self.blocked: set[TopicAndPartition] = set()
        self.stopped = {PartitionGeneration(*self.random.choice(KEYS), 0)}
        self.upcoming, self._names = Upcoming(), iter(range(10_000))

    def land(self) -> None:
        """A file with some of some partitions, also of another cluster."""
        ranges = []
        for topic, number in self.random.sample(KEYS, self.random.randint(1, 4)):
            cluster = self.random.choice(["east", "east", "west"])
            place, count = (cluster, (topic, number)), self.random.randint(1, 9)
            first = self.ends[place]
            self.ends[place] += count
            generation = self.generation[topic, number] if cluster == "east" else 0
            last = first + count - 1
            ranges.append(StagedRange(cluster, topic, number, generation, first, last, count))
        self._commit([ranges], ())

    def begin_generation(self) -> None:
        """A topic is made again, or its log goes back."""
        key = self.random.choice(KEYS)
        self.generation[key] += 1
        self.ends["east", key] = 0

    def rewrite(self) -> None:
        """OPTIMIZE: other files hold the same."""
        old = self.random.sample(sorted(self.files), min(len(self.files), 3))
        if old:
            self._commit([[one for path in old for one in self.files[path]]], old)

    def delete(self) -> None:
        """Retention takes a file."""
        if self.files:
            self._commit([], [self.random.choice(sorted(self.files))])

    def build_anew(self) -> None:
        """The index is thrown away; or its own copy is taken."""
        index = StageIndex()
        if self.random.random() < 0.5:
            index.restore(dict(self.index.numbers()), list(self.index.parts()))
        else:
            index.apply(sorted(self.files.items()), (), 0)
        self.index = index

    def block(self) -> None:
        """A target refuses records of a partition."""
        self.blocked.add(self.random.choice(KEYS))

    def plan(self) -> None:
        """A batch, as much as there is room for, that succeeds, or fails in some of its shards."""
        among = self.upcoming.among(self.index, "east")
        plan, whole = self._planned(among), self._planned(None)
        assert plan.upcoming == whole.upcoming
        self.upcoming.left(plan.upcoming)
        for shard in plan.shards:
            if self.random.random() < 0.8:
                for one in shard.partitions:
                    floor = self.floors.get(one.key, NOTHING_MAPPED).of_generation(one.generation)
                    self.floors[one.key] = replace(floor, reached=one.last + 1)

    def _planned(self, among: set[TopicAndPartition] | None) -> BatchPlan:
        return plan_batch(
            self.index,
            "east",
            self.floors,
            str.upper,
            produce_tasks=3,
            max_records=self.random.choice([5, 1_000]),
            blocked=self.blocked,
            stopped=self.stopped,
            among=among,
        )

    def _commit(self, contents: list[list[StagedRange]], old: list[str] | tuple[()]) -> None:
        added = {f"f{next(self._names)}": ranges for ranges in contents}
        self.files = {path: of for path, of in self.files.items() if path not in old} | added
        self.index.apply(added.items(), old, self.index.version + 1)


@pytest.mark.parametrize("seed", range(12))
def test_what_moved_since_is_all_there_is_to_produce(seed: int) -> None:
    history = History(seed)
    does = [history.land] * 6 + [history.plan] * 6 + [history.rewrite, history.delete]
    does += [history.begin_generation, history.build_anew]
    for number in range(80):
        if number == 40:
            history.block()
        history.random.choice(does)()
    for _ in range(40):
        history.plan()
