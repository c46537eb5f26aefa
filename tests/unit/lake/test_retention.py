"""What may be deleted of the stage: the law, on any history, and its corners."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.lake.retention import (
    ConsumingFlow,
    Cut,
    Removal,
    Retained,
    StagedGeneration,
    cut_records,
    removals_of,
)
from mirrorlake.offsets.positions import PartitionGeneration

KEY = ("orders", 0)
offsets = st.lists(st.integers(0, 60), min_size=1, max_size=25, unique=True).map(sorted)


@st.composite
def extents(draw: st.DrawFn) -> list[StagedGeneration]:
    """Generations of orders-0 and payments-0 in two clusters; landed in order, so what is old comes
    first."""
    found = []
    for cluster in ("east", "north"):
        for topic in ("orders", "payments"):
            for generation in draw(st.sets(st.integers(0, 2), max_size=3)):
                rows = draw(offsets)
                old = draw(st.integers(0, len(rows)))
                found.append(
                    StagedGeneration(
                        cluster,
                        topic,
                        0,
                        generation,
                        rows[0],
                        rows[-1],
                        rows[old - 1] if old else None,
                    )
                )
    return found


positions = st.tuples(st.integers(0, 2), st.integers(0, 61))
readers = st.builds(
    lambda number, source, topics, floors: ConsumingFlow(
        f"flow {number}", source, topics.__contains__, floors
    ),
    st.integers(0, 9),
    st.sampled_from(["east", "north"]),
    st.frozensets(st.sampled_from(["orders", "payments"]), min_size=1),
    st.dictionaries(st.sampled_from([("orders", 0), ("payments", 0)]), positions),
)


@given(extents(), st.lists(readers, max_size=3))
def test_nothing_goes_that_a_flow_lacks_and_the_newest_stays(
    staged: list[StagedGeneration], flows: list[ConsumingFlow]
) -> None:
    cuts, _ = cut_records(staged, flows)
    assert len({(cut.source_cluster, cut.topic, cut.generation) for cut in cuts}) == len(cuts)
    for cut in cuts:
        (extent,) = [
            item
            for item in staged
            if (item.source_cluster, item.topic, item.generation)
            == (cut.source_cluster, cut.topic, cut.generation)
        ]
        newest = max(
            i.generation
            for i in staged
            if (i.source_cluster, i.topic) == (cut.source_cluster, cut.topic)
        )
        for offset in range(extent.first, min(cut.below, extent.last + 1)):
            assert offset < extent.last or extent.generation < newest
            for flow in flows:
                if flow.source_cluster == extent.source_cluster and flow.mirrors(extent.topic):
                    generation, position = flow.floors.get((extent.topic, 0), (0, 0))
                    assert (extent.generation, offset) < (generation, position)


def test_all_that_is_old_goes_but_the_newest_when_every_flow_has_it() -> None:
    flows = [
        ConsumingFlow("a", "east", lambda topic: True, {KEY: (0, 90)}),
        ConsumingFlow("b", "east", lambda topic: True, {KEY: (0, 70)}),
    ]
    assert cut_records([StagedGeneration("east", *KEY, 0, 5, 99, 60)], flows) == (
        [Cut("east", *KEY, 0, 70)],
        [],
    )
    assert cut_records([StagedGeneration("east", *KEY, 0, 5, 60, 60)], flows) == (
        [Cut("east", *KEY, 0, 60)],
        [],
    )


def test_a_flow_that_has_never_run_holds_all_back_and_is_named() -> None:
    fresh = ConsumingFlow("c", "east", lambda topic: topic == "orders", {})
    cuts, retained = cut_records(
        [
            StagedGeneration("east", *KEY, 0, 5, 99, 60),
            StagedGeneration("east", "other", 0, 0, 5, 99, 60),
        ],
        [fresh],
    )
    assert cuts == [Cut("east", "other", 0, 0, 99)]
    assert retained == [Retained("c", "orders", 0, 0, 5)]


def test_flows_of_another_source_and_disabled_ones_hold_nothing() -> None:
    elsewhere = ConsumingFlow("north->west", "north", lambda topic: True, {})
    assert cut_records([StagedGeneration("east", *KEY, 0, 5, 99, 60)], [elsewhere])[0] == [
        Cut("east", *KEY, 0, 99)
    ]


def test_a_disabled_flow_holds_records_until_they_are_released() -> None:
    off = ConsumingFlow("c", "east", lambda topic: True, {KEY: (0, 20)}, enabled=False)
    for released, below, offset in ((None, 20, 20), (10, 20, 20), (40, 41, 41)):
        extent = StagedGeneration("east", *KEY, 0, 5, 99, 60, released)
        assert cut_records([extent], [off]) == (
            [Cut("east", *KEY, 0, below)],
            [Retained("c", *KEY, 0, offset)],
        )
    assert cut_records([StagedGeneration("east", *KEY, 0, 5, 99, 60, 60)], [off]) == (
        [Cut("east", *KEY, 0, 61)],
        [],
    )


def test_what_is_noted_is_what_is_old_enough() -> None:
    extents = [
        StagedGeneration("east", *KEY, 0, 5, 99, 60),
        StagedGeneration("east", "other", 0, 0, 5, 99, 60),
    ]
    cuts = [Cut("east", *KEY, 0, 70), Cut("east", "other", 0, 0, 40)]
    assert removals_of(extents, cuts) == [
        Removal("east", *KEY, 0, 5, 61),
        Removal("east", "other", 0, 0, 5, 40),
    ]


def test_a_previous_generation_goes_whole_once_a_flow_is_in_the_newer_one() -> None:
    staged = [
        StagedGeneration("east", *KEY, 0, 0, 9, 9),
        StagedGeneration("east", *KEY, 1, 0, 4, 4),
    ]
    behind, ahead = (
        ConsumingFlow("a", "east", lambda topic: True, {KEY: floor}) for floor in ((0, 7), (1, 2))
    )
    assert cut_records(staged, [ahead])[0] == [Cut("east", *KEY, 0, 10), Cut("east", *KEY, 1, 2)]
    assert cut_records(staged, [behind, ahead]) == (
        [Cut("east", *KEY, 0, 7)],
        [Retained("a", *KEY, 0, 7), Retained("a", *KEY, 1, 0), Retained("a", *KEY, 1, 2)],
    )


def test_what_is_too_young_is_nobodys_matter() -> None:
    assert cut_records([StagedGeneration("east", *KEY, 0, 5, 99, None)], []) == ([], [])


def test_who_reads_some_offsets_holds_back_no_others() -> None:
    reader = ConsumingFlow(
        "restore:1:east->west",
        "east",
        lambda topic: topic == "orders",
        floors={KEY: (1, 12)},
        within={PartitionGeneration("orders", 0, 1): (10, 19)},
    )
    staged = [
        StagedGeneration("east", "orders", 0, generation, 0, 99, 99) for generation in (0, 1, 2)
    ]
    staged.append(StagedGeneration("east", "orders", 1, 0, 0, 99, 99))
    cuts, retained = cut_records(staged, [reader])
    below = {(cut.partition, cut.generation): cut.below for cut in cuts}
    assert below == {(0, 0): 100, (0, 1): 12, (0, 2): 99, (1, 0): 99}
    assert retained == [Retained("restore:1:east->west", "orders", 0, 1, 12)]
    sent = replace(reader, floors={KEY: (1, 20)})
    assert not cut_records(staged, [sent])[1], "it has all that it reads"
