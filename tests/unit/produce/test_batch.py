"""Planning batches: all that the stage holds above the progress, once, by the shard that owns the
partition."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorlake.offsets.generations import TargetGeneration
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.progress import NOTHING_MAPPED, Floor, MappedEnd, floors_of
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.batch import BatchPlan, plan_batch, shard_of

TOPICS = ("a", "b", "orders")
#: Landed batches: offsets that each brings of some partitions.
LANDED = st.lists(
    st.dictionaries(
        st.tuples(st.sampled_from(TOPICS), st.integers(0, 2)),
        st.integers(1, 40),
        min_size=1,
        max_size=5,
    ),
    max_size=8,
)
SHARDS = st.integers(1, 5)
MOST = st.integers(1, 60)


def remote(topic: str) -> str:
    return f"east.{topic}"


def landed(
    batches: list[dict[TopicAndPartition, int]],
) -> tuple[StageIndex, dict[TopicAndPartition, int]]:
    """A stage as landing leaves it, and how far each partition goes."""
    index, ends = StageIndex(), defaultdict(int)
    for number, batch in enumerate(batches):
        ranges = []
        for (topic, partition), count in batch.items():
            first = ends[topic, partition]
            ends[topic, partition] += count
            ranges.append(StagedRange("east", topic, partition, 0, first, first + count - 1, count))
        index.apply([(f"f{number}", ranges)], (), number)
    return index, dict(ends)


def planned(
    index: StageIndex, floors: dict[TopicAndPartition, Floor], shards: int, most: int
) -> BatchPlan:
    return plan_batch(index, "east", floors, remote, produce_tasks=shards, max_records=most)


@given(LANDED, SHARDS, MOST)
def test_batch_after_batch_takes_all_once_and_in_order(
    batches: list[dict[TopicAndPartition, int]], shards: int, most: int
) -> None:
    index, ends = landed(batches)
    floors: dict[TopicAndPartition, Floor] = {}
    while (plan := planned(index, floors, shards, most)).shards:
        assert plan.ordered
        for shard in plan.shards:
            for each in shard.partitions:
                key = (each.topic, each.partition)
                assert shard.shard == shard_of(*key, shards)
                assert each.first == floors.get(key, NOTHING_MAPPED).next <= each.last
                floors[key] = Floor(each.last + 1, None)
    assert {key: floor.source for key, floor in floors.items()} == ends


@given(LANDED, SHARDS, MOST)
def test_a_batch_is_about_as_large_as_it_may_be(
    batches: list[dict[TopicAndPartition, int]], shards: int, most: int
) -> None:
    index, ends = landed(batches)
    plan = planned(index, {}, shards, most)
    held = sum(each.last - each.first + 1 for each in plan.partitions)
    largest = max((count for batch in batches for count in batch.values()), default=0)
    assert (
        plan.record_count
        == held
        >= (min(most, sum(ends.values())) if largest <= most else 1 if batches else 0)
    )
    assert held <= most + min(most, largest)


@given(LANDED, SHARDS, st.randoms(use_true_random=False))
def test_files_are_read_in_an_order_that_is_each_partitions_own(
    batches: list[dict[TopicAndPartition, int]], shards: int, random: object
) -> None:
    """Also where compaction made files whose order is no longer that of landing."""
    index, _ = landed(batches)
    held = defaultdict(list)
    for path, item in index.rows():
        held[path].append(item)
    paths = sorted(held)
    random.shuffle(paths)  # type: ignore[attr-defined]
    other = StageIndex()
    other.apply([(path, held[path]) for path in paths], (), 0)
    plan = planned(other, {}, shards, 10_000)
    assert plan.ordered
    for shard in plan.shards:
        for each in shard.partitions:
            firsts = [
                item.first
                for path in shard.files
                for item in held[path]
                if (item.topic, item.partition) == (each.topic, each.partition)
            ]
            assert firsts == sorted(firsts)


def test_ranges_that_overlap_are_to_be_sorted() -> None:
    index = StageIndex()
    for path, first, last in (("x", 0, 10), ("y", 5, 15)):
        index.apply([(path, [StagedRange("east", "a", 0, 0, first, last, 6)])], (), 0)
    plan = planned(index, {}, 1, 100)
    assert not plan.ordered
    assert [(each.first, each.last) for each in plan.partitions] == [(0, 15)]


def test_two_partitions_that_want_files_in_opposite_order_are_to_be_sorted() -> None:
    index = StageIndex()
    one, two = ("a", 0), ("a", 1)
    for path, firsts in (("x", {one: 0, two: 10}), ("y", {one: 10, two: 0})):
        ranges = [
            StagedRange("east", *key, 0, first, first + 9, 10) for key, first in firsts.items()
        ]
        index.apply([(path, ranges)], (), 0)
    assert not planned(index, {}, 1, 100).ordered


def test_large_ranges_are_taken_in_parts_so_that_others_get_their_turn() -> None:
    index = StageIndex()
    for partition in range(4):
        index.apply(
            [(f"f{partition}", [StagedRange("east", "a", partition, 0, 0, 999_999, 1_000_000)])],
            (),
            0,
        )
    plan = planned(index, {}, 4, 1_000)
    assert {(each.partition, each.first, each.last) for each in plan.partitions} == {
        (p, 0, 249) for p in range(4)
    }
    gaps = StageIndex()
    gaps.apply([("g", [StagedRange("east", "a", 0, 0, 0, 999_999, 1_000)])], (), 0)
    assert [(each.first, each.last) for each in planned(gaps, {}, 1, 100).partitions] == [
        (0, 99_999)
    ]


def test_the_oldest_generation_goes_first_and_alone() -> None:
    index = StageIndex()
    for generation in (0, 1):
        index.apply(
            [(f"f{generation}", [StagedRange("east", "a", 0, generation, 0, 9, 10)])], (), 0
        )
    floors: dict[TopicAndPartition, Floor] = {}
    for generation in (0, 1):
        (each,) = planned(index, floors, 1, 100).partitions
        assert (each.generation, each.first, each.last) == (generation, 0, 9)
        floors["a", 0] = Floor(10, 10, generation)
    assert not planned(index, floors, 1, 100).shards


def test_what_waits_or_has_no_name_is_left_out() -> None:
    index, _ = landed([{("a", 0): 5, ("a", 1): 5, ("b", 0): 5}])
    plan = plan_batch(
        index,
        "east",
        {},
        lambda topic: None if topic == "b" else topic,
        produce_tasks=2,
        max_records=100,
        blocked={("a", 0)},
    )
    assert [(each.topic, each.partition) for each in plan.partitions] == [("a", 1)]
    assert not plan_batch(index, "west", {}, remote, produce_tasks=2, max_records=100).shards


def test_what_the_target_took_already_is_taken_at_once_and_not_before_it_is_staged() -> None:
    index, _ = landed([{("a", 0): 10, ("b", 0): 10}, {("a", 0): 10}])

    def taken(last: int) -> dict[TopicAndPartition, tuple[int, bool]]:
        whole = {PartitionGeneration("a", 0, 0): last}
        plan = plan_batch(index, "east", {}, remote, produce_tasks=1, max_records=4, whole=whole)
        return {part.key: (part.last, part.by_content) for part in plan.partitions}

    assert taken(14)["a", 0] == (19, True)
    assert taken(19)["a", 0] == (19, True)
    assert taken(20).keys() == {("b", 0)}


def test_of_a_stopped_generation_a_little_is_planned_until_its_map_is_restored() -> None:
    index, _ = landed([{("a", 0): 5}, {("a", 0): 5}])
    place = PartitionGeneration("a", 0, 0)

    def stopped(unrestored: set[PartitionGeneration], floor: int = 0) -> BatchPlan:
        return plan_batch(
            index,
            "east",
            {("a", 0): Floor(floor, None)},
            remote,
            produce_tasks=1,
            max_records=100,
            stopped={place},
            unrestored=unrestored,
        )

    (each,) = stopped({place}).partitions
    assert (each.first, each.last, each.restores_only) == (0, 4, True)
    (each,) = stopped({place}, floor=5).partitions
    assert (each.first, each.last, each.restores_only) == (5, 9, True)
    assert not stopped(set()).shards


def test_an_unmapped_partition_begins_in_the_living_generation_of_its_target() -> None:
    index, _ = landed([{("a", 0): 5}])
    (each,) = plan_batch(
        index,
        "east",
        {},
        remote,
        produce_tasks=1,
        max_records=9,
        targets={"east.a": TargetGeneration(2)},
    ).partitions
    assert each.floor == Floor(0, None, 0, 2)


ENDS = [
    MappedEnd("a", 0, "east.a", 0, 0, 100, 110),
    MappedEnd("a", 0, "east.a", 0, 1, 20, 131),
    MappedEnd("a", 0, "east.a", 1, 1, 30, 11),
    MappedEnd("a", 0, "old.a", 0, 0, 90, 95),
]


@settings(max_examples=20)
@given(st.permutations(ENDS))
def test_floors_are_the_newest_ends_of_what_counts(ends: list[MappedEnd]) -> None:
    key = ("a", 0)
    assert floors_of(ends, remote, {"east.a": TargetGeneration(1, 0)})[key] == Floor(30, 11, 1, 1)
    assert floors_of(ends, remote, {"east.a": TargetGeneration(2, 0)})[key] == Floor(30, None, 1, 2)
    assert floors_of(ends, remote, {"east.a": TargetGeneration(1, 1)})[key] == Floor(30, 11, 1, 1)
    assert floors_of(ends[:0], remote, {}) == {}
    without_new = [
        end for end in ends if end.target_generation == 0 and end.target_topic == "east.a"
    ]
    assert floors_of(without_new, remote, {})[key] == Floor(20, 131, 1)
    assert key not in floors_of(without_new, remote, {"east.a": TargetGeneration(1, 1)})


def test_a_generation_that_is_stopped_is_left_out_and_the_next_one_goes_on() -> None:
    index, place = StageIndex(), ("orders", 0)
    for number, (generation, first, last) in enumerate([(0, 0, 9), (1, 0, 4), (2, 0, 3)]):
        ranges = [StagedRange("east", *place, generation, first, last, last - first + 1)]
        index.apply([(f"f{number}", ranges)], (), number)

    def taken(floor: Floor, *stopped: int) -> tuple[int, int, int] | None:
        over = [PartitionGeneration(*place, generation) for generation in stopped]
        plan = plan_batch(
            index, "east", {place: floor}, remote, produce_tasks=1, max_records=100, stopped=over
        )
        (each,) = plan.partitions or (None,)
        return None if each is None else (each.generation, each.first, each.last)

    assert taken(Floor(4, 4)) == (0, 4, 9)
    assert taken(Floor(4, 4), 0) == taken(Floor(10, 10)) == taken(Floor(10, 10), 0) == (1, 0, 4)
    assert taken(Floor(4, 4), 1) == (0, 4, 9)
    assert taken(Floor(10, 10), 1) == taken(Floor(4, 4), 0, 1) == (2, 0, 3)
    assert taken(Floor(4, 4), 0, 1, 2) is None
