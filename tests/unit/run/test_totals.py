"""What a plan comes to."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.control.topic_comparison import compare_topics
from mirrorlake.control.topic_plan import TopicPlan
from mirrorlake.kafka.connections import Connections
from mirrorlake.offsets.partition_ranges import PartitionRanges, StagedRange
from mirrorlake.run.plan_totals import NothingStaged, UnknownStage, flow_totals
from mirrorlake.run.totals import Totals, added, map_ends, not_landed, topic_totals, waiting_places
from mirrorlake.testing import MemoryCluster


class Stage:
    """A lake with the first 100 offsets of orders-0, of which 7 records wait."""

    def ends(self, _alias: str) -> dict[tuple[str, int], int]:
        return {("orders", 0): 100}

    def waiting(self, _flow: str, _alias: str, topics: Collection[str]) -> tuple[int, int]:
        assert set(topics) == {"orders"}
        return 7, 70


def test_topics_and_partitions_by_what_becomes_of_them() -> None:
    plans = [
        TopicPlan("a", "east.a", 4, 1, "create"),
        TopicPlan("b", "east.b", 6, 1, "add_partitions"),
        TopicPlan("c", "east.c", 2, 1, "none"),
        TopicPlan("d", "east.d", partitions=9, factor=1, action="refuse", reason="no right"),
    ]
    totals = topic_totals(plans, {"east.b": 5, "east.c": 8, "east.d": 1})
    assert (totals.topics, totals.topics_to_create, totals.topics_refused) == (4, 1, 1)
    assert (
        totals.partitions,
        totals.partitions_to_create,
        totals.partitions_there,
        totals.partitions_refused,
    ) == (21, 4 + 1, 5 + 2, 9)


@pytest.mark.parametrize(
    ("start", "end", "staged", "left"),
    [(0, 9, None, 9), (4, 9, None, 5), (4, 9, 7, 2), (4, 9, 2, 5), (4, 9, 12, 0)],
)
def test_what_is_not_landed(start: int, end: int, staged: int | None, left: int) -> None:
    key = ("a", 0)
    assert not_landed({key: start}, {key: end}, {} if staged is None else {key: staged}) == left


def test_what_is_not_known_of_one_is_not_known_of_all() -> None:
    one = Totals(topics=2, offsets_at_source=5)
    assert added([one, one]).offsets_at_source == 10 and added([]) == Totals()
    both = added([one, replace(one, offsets_at_source=None)])
    assert both.topics == 4 and both.offsets_at_source is None


def test_both_clusters_are_asked(tmp_path: Path) -> None:
    file = tmp_path / "mirrorlake.yml"
    file.write_text(
        "clusters: {east: {bootstrap_servers: 'x:1'}, west: {bootstrap_servers: 'y:1'}}\n"
        "lake: {path: ./lake}\nflows: {east->west: {topics: [orders]}}\n",
        encoding="utf-8",
    )
    topology = load_topology(file)
    east, west = (
        MemoryCluster("east", {"orders": [120, 80], "audit": [7]}),
        MemoryCluster("west", {"east.orders": [9]}),
    )
    connections, flow = (
        Connections(topology, {"east": east, "west": west}),
        topology.flow("east->west"),
    )
    plans = compare_topics(flow, connections, None, east.topics())
    found = flow_totals(connections, flow, plans, Stage())
    assert (found.topics, found.partitions_to_create, found.partitions_there) == (1, 1, 1)
    assert (found.offsets_at_source, found.records_staged, found.bytes_staged) == (20 + 80, 7, 70)
    unknown = flow_totals(connections, flow, plans, UnknownStage())
    assert (unknown.offsets_at_source, unknown.records_staged, unknown.bytes_staged) == (
        None,
        None,
        None,
    )
    assert flow_totals(connections, flow, plans, NothingStaged()).offsets_at_source == 200


def test_what_waits_in_the_stage_lies_behind_the_map() -> None:
    ranges = PartitionRanges()
    for file, (generation, first, last, count) in enumerate(
        ((0, 0, 9, 10), (0, 10, 19, 5), (1, 0, 4, 5))
    ):
        ranges.add(file, StagedRange("east", "t", 0, generation, first, last, count))
    mapped = {
        "topic": "t",
        "partition": 0,
        "target_generation": 0,
        "generation": 0,
        "source_position": 14,
    }
    staged = {"t": {0: ranges}}
    assert waiting_places(staged, map_ends([mapped])) == ([("t", 0, 0, 14), ("t", 0, 1, 0)], 3 + 5)
    assert waiting_places(staged, {}) == ([("t", 0, 0, 0), ("t", 0, 1, 0)], 20)
    assert waiting_places(
        staged, map_ends([mapped, {**mapped, "generation": 1, "source_position": 5}])
    ) == ([], 0)
    again = {**mapped, "target_generation": 1, "source_position": 12}
    assert waiting_places(staged, map_ends([mapped, again]))[0][0] == ("t", 0, 0, 12), (
        "what the new topic never got"
    )
