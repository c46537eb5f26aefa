"""What is checked before a run costs grows no faster than flows and topics, and the laws that
`status` checks no faster than partitions."""

from collections.abc import Callable
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.checks.laws import MapExtent, overtaken, shortfalls
from mirrorlake.checks.rules import _same_cluster, _strangers, _two_aliases, check_flows
from mirrorlake.config.topology import Topology
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.positions import PartitionGeneration
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.run.attention import attention, standing
from mirrorlake.run.resolve import Wanted, open_incidents
from mirrorlake.run.totals import map_ends, waiting_places
from tests.support.growth import SORTED, Made, growth

TOPICS = 10


#: Between so few clusters are all flows of a check: each name is looked at for each of them.
CLUSTERS = [f"c{number}" for number in range(12)]


def topology(size: int) -> Topology:
    """So many flows, each of one topic."""
    flow = {"topics": ["t1"], "heartbeats_replication_enabled": False}
    names = [f"{source}->{target}" for source, target in permutations(CLUSTERS, 2)]
    clusters = dict.fromkeys(CLUSTERS, {"bootstrap_servers": "127.0.0.1:9092"})
    flows = dict.fromkeys(names[:size], flow)
    return Topology.model_validate({"clusters": clusters, "lake": {"path": "./l"}, "flows": flows})


def checked(flows: int, topics: int) -> Callable[[], object]:
    """Flows, each of whose sources has so many topics."""
    going = topology(flows).active_flows()
    names = {alias: [f"t{number}" for number in range(topics)] for alias in CLUSTERS}
    ids = {alias: f"id of {alias}" for alias in CLUSTERS}
    return lambda: check_flows(going, ids, names, {}, dict.fromkeys(CLUSTERS, 1))


def of_other_names(size: int) -> Callable[[], object]:
    """Clusters that the lake knows by another alias, or whose alias it knows as another one."""
    flows: Any = [
        SimpleNamespace(name=f"c{n}->west", source=f"c{n}", target="west") for n in range(size)
    ]
    ids = {flow.source: f"id of {flow.source}" for flow in flows}
    known = {f"old id of {alias}": alias for alias in list(ids)[::2]}
    known |= {ids[alias]: f"old {alias}" for alias in list(ids)[1::2]}
    return lambda: (
        [*_same_cluster(flows, ids), *_two_aliases(flows, ids)] + [*_strangers(flows, ids, known)]
    )


FLOWS: dict[str, Made] = {
    "many flows": lambda size: checked(size // 2, 3),
    "many topics": lambda size: checked(20, size),
    "clusters of other names": of_other_names,
}


@pytest.mark.parametrize("case", FLOWS)
def test_a_check_grows_as_flows_and_topics(case: str) -> None:
    assert growth(FLOWS[case]) < SORTED


def staged(size: int) -> StageIndex:
    """Two files with records of each partition."""
    index = StageIndex()
    for number in range(2):
        ranges = [
            StagedRange("east", f"t{n % TOPICS}", n, 0, 10 * number, 10 * number + 9, 10)
            for n in range(size)
        ]
        index.apply([(f"f{number}", ranges)], (), number + 1)
    return index


def extents(size: int) -> list[MapExtent]:
    return [
        MapExtent("f", f"t{n % TOPICS}", n, 0, f"T{n % TOPICS}", n, 0, 15, 15) for n in range(size)
    ]


def in_front_of_the_map(size: int) -> Callable[[], object]:
    topics, ends = staged(size).topics("east"), extents(size)
    stopped = {PartitionGeneration(f"t{n % TOPICS}", n, 0): 12 for n in range(0, size, 3)}
    return lambda: overtaken("f", ends, topics, stopped, {})


def behind_the_target(size: int) -> Callable[[], object]:
    ends = extents(size)
    keys = {(extent.topic, extent.partition) for extent in ends}
    log_ends = {(extent.target_topic, extent.target_partition): 9 for extent in ends[::2]}
    return lambda: [each.detail() for each in shortfalls(ends, keys, log_ends)]


def behind_the_map(size: int) -> Callable[[], object]:
    topics = staged(size).topics("east")
    rows = [
        {"topic": f"t{n % TOPICS}", "partition": n, "target_generation": 0, "generation": 0}
        | {"source_position": 12}
        for n in range(size)
    ]
    return lambda: waiting_places(topics, map_ends(rows))


def incidents(size: int) -> list[dict[str, Any]]:
    return [
        {"flow": f"c{n % TOPICS}->west", "kind": "target_refused", "at": n, "topic": f"t{n}"}
        | {"partition": n, "detail": "no"}
        for n in range(size)
    ]


def alerts(size: int) -> list[dict[str, Any]]:
    kinds = ("lag", "stuck", "other", "incident")
    return [
        {**row, "alert": kinds[number % 4], "value": 9, "threshold": 1}
        for number, row in enumerate(incidents(size))
    ]


STATUS: dict[str, Made] = {
    "records in front of the map": in_front_of_the_map,
    "targets that lack something": behind_the_target,
    "records behind the map": behind_the_map,
    "what needs attention": lambda size: lambda: attention(incidents(size), alerts(size)),
    "how flows stand": lambda size: (
        lambda: [
            standing({"sampled_at": None, "open_incidents": n, "state": ""}) for n in range(size)
        ]
    ),
    "incidents that are meant": lambda size: (
        lambda: open_incidents(
            SimpleNamespace(table_rows=lambda _: incidents(size)),  # type: ignore[arg-type]
            Wanted("c1->west", kind="target_refused"),
        )
    ),
}


@pytest.mark.parametrize("case", STATUS)
def test_what_status_says_grows_as_what_there_is(case: str) -> None:
    assert growth(STATUS[case]) < SORTED
