"""Planning a batch: every new row once, by the shard that owns its partition for ever, in order or known not to be."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.core.batch import NOTHING_MAPPED, FileRange, Floor, cut_by_versions, plan_batch, shard_of
from mirrorlake.lake.stage import cut_windows

RANGES = st.lists(
    st.builds(
        lambda file, version, topic, partition, first, length: FileRange(
            f"f{version}-{file}", version, topic, partition, first, first + length - 1, length
        ),
        st.integers(0, 2),
        st.integers(1, 4),
        st.sampled_from(["a", "b", "orders"]),
        st.integers(0, 3),
        st.integers(0, 50),
        st.integers(1, 20),
    ),
    max_size=15,
    unique_by=lambda item: (item.path, item.topic, item.partition),
)
FLOORS = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b", "orders"]), st.integers(0, 3)),
    st.builds(Floor, st.integers(0, 60), st.none() | st.integers(0, 60)),
)
SHARDS = st.integers(1, 5)


def remote(topic: str) -> str:
    return f"east.{topic}"


@given(RANGES, FLOORS, SHARDS)
def test_every_partition_with_something_new_is_in_its_own_shard(
    ranges: list[FileRange], floors: dict[tuple[str, int], Floor], shards: int
) -> None:
    plan = plan_batch(ranges, floors, remote, shards)
    wanted = [item for item in ranges if item.last >= floors.get((item.topic, item.partition), NOTHING_MAPPED).source]
    found = {(each.topic, each.partition): (shard, each) for shard in plan.shards for each in shard.partitions}
    assert sum(len(shard.partitions) for shard in plan.shards) == len(found)
    assert set(found) == {(item.topic, item.partition) for item in wanted}
    assert plan.record_count == sum(item.record_count for item in wanted)
    for (topic, partition), (shard, each) in found.items():
        mine = [item for item in wanted if (item.topic, item.partition) == (topic, partition)]
        assert shard.shard == shard_of(topic, partition, shards)
        assert (each.first, each.last) == (min(item.first for item in mine), max(item.last for item in mine))
        assert each.target_topic == remote(topic)
        assert {item.path for item in mine} <= set(shard.files)
    for shard in plan.shards:
        assert len(set(shard.files)) == len(shard.files)


@given(RANGES, SHARDS)
def test_ordered_means_that_reading_the_files_in_turn_yields_rising_offsets(
    ranges: list[FileRange], shards: int
) -> None:
    plan = plan_batch(ranges, {}, remote, shards)
    rises = True
    for shard in plan.shards:
        for each in shard.partitions:
            last = -1
            for path in shard.files:
                for item in ranges:
                    if (item.path, item.topic, item.partition) == (path, each.topic, each.partition):
                        rises = rises and item.first > last
                        last = max(last, item.last)
    assert plan.ordered is rises


@given(RANGES, st.integers(1, 100))
def test_cutting_keeps_whole_commits_oldest_first(ranges: list[FileRange], most: int) -> None:
    kept, newest = cut_by_versions(ranges, most)
    if not ranges:
        assert (kept, newest) == ([], None)
        return
    assert newest is not None
    assert sorted(map(repr, kept)) == sorted(repr(item) for item in ranges if item.version <= newest)
    before = sum(item.record_count for item in kept if item.version < newest)
    assert before < most
    if any(item.version > newest for item in ranges):
        assert sum(item.record_count for item in kept) >= most


@given(st.text(min_size=1), st.integers(0, 100), SHARDS)
def test_neighbouring_partitions_go_to_different_shards(topic: str, partition: int, shards: int) -> None:
    mine, next_one = shard_of(topic, partition, shards), shard_of(topic, partition + 1, shards)
    assert 0 <= mine < shards
    assert shards == 1 or mine != next_one


@given(RANGES, SHARDS, st.integers(1, 40))
def test_windows_of_a_backfill_cover_every_offset_once_and_in_order(
    ranges: list[FileRange], shards: int, most: int
) -> None:
    plans = [each for shard in plan_batch(ranges, {}, remote, shards).shards for each in shard.partitions]
    floors = {(plan.topic, plan.partition): 0 for plan in plans}
    for _ in range(200):
        pieces = cut_windows(
            [replace(plan, floor=Floor(floors[plan.topic, plan.partition], None)) for plan in plans], most
        )
        if not pieces:
            break
        assert sum(piece.last - piece.first + 1 for piece in pieces) <= max(most, len(plans))
        for piece in pieces:
            key = (piece.topic, piece.partition)
            whole = next(plan for plan in plans if (plan.topic, plan.partition) == key)
            assert piece.first == max(whole.first, floors[key])
            floors[key] = piece.last + 1
    for plan in plans:
        assert floors[plan.topic, plan.partition] == plan.last + 1
