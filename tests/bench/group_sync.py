"""How long a turn of checkpoints takes for many consumer groups: its cost every ten seconds."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from mirrorlake.config.topology import Topology
from mirrorlake.devtools.bench.measure import seconds_of
from mirrorlake.devtools.bench.scale import wait_until_listed
from mirrorlake.groups.group_sync import GroupTurns
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.lake.changes import MemoryLog
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.opening import open_lake
from mirrorlake.mm2.mirror_topics import CheckpointTopic
from mirrorlake.offsets.positions import Committed, Reached, TopicAndPartition
from mirrorlake.produce.report import SEGMENT
from mirrorlake.spark.session import local_session
from tests.bench.control import topology_of
from tests.support.groups import NotRunning

GROUPS, TOPICS, PARTITIONS = 500, 200, 2
#: Topics that a group reads.
TOPICS_OF_A_GROUP = 4
#: Runs in the map per partition, and records per run.
RUNS, RUN_RECORDS = 20, 1_000
PREFIX, FLOW = "bench-groups-", "east->west"
_LONGS = ("source_first", "source_last", "target_first", "target_last", "record_count", "batch_id")
_MAP = pa.schema(
    [("flow", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]
    + [("target_topic", pa.string()), ("target_partition", pa.int32())]
    + [(name, pa.int64()) for name in _LONGS]
    + [("segments", pa.list_(SEGMENT))]
)


def measure_groups(east: str, west: str, directory: Path) -> dict[str, float]:
    """Create 500 groups over 200 topics on `east`, and a map of them in a new lake, and time turns
    of checkpoints: {"groups", "topics", "positions", "first_round_seconds", "all_moved_seconds",
    "tenth_moved_seconds", "nothing_moved_seconds"}; the first turn of a process, and later ones in
    which all groups have moved, every tenth, and none. All positions are different."""
    patterns = [f"{PREFIX}.*"]
    topology = topology_of({"east": east, "west": west}, topics=patterns, groups=patterns)
    connections = Connections(topology)
    source = connections.admin("east")
    topics = [TopicInfo(f"{PREFIX}{number:03}", PARTITIONS, 1) for number in range(TOPICS)]
    source.create_topics(topics)
    wait_until_listed(source, [topic.name for topic in topics])
    spark = local_session()
    try:
        lake = open_lake(spark, topology.lake, directory)
        _fill_map(lake)
        return _timed_turns(lake, connections, topology)
    finally:
        spark.stop()


def _timed_turns(lake: Lake, connections: Connections, topology: Topology) -> dict[str, float]:
    """Commit positions; time turns, which also write `checkpoints` and MirrorMaker 2's topic."""
    flow, deployment = topology.flow(FLOW), Deployment(lake, connections, EventLog(lake))
    groups = connections.groups("east")
    positions = _committed()
    groups.move(positions)
    running = _Mapped(flow.selection.selects)
    published = CheckpointTopic(flow, connections, MemoryLog())
    checkpoints = GroupTurns(flow, deployment, running, published).source
    seconds = {"first_round_seconds": seconds_of(checkpoints.checkpoint)}
    groups.move(_moved(positions, 1, 1))
    seconds["all_moved_seconds"] = seconds_of(checkpoints.checkpoint)
    groups.move(_moved(positions, 10, 2))
    seconds["tenth_moved_seconds"] = seconds_of(checkpoints.checkpoint)
    seconds["nothing_moved_seconds"] = seconds_of(checkpoints.checkpoint)
    count = sum(map(len, positions.values()))
    return {"groups": len(positions), "topics": TOPICS, "positions": count, **seconds}


def _moved(
    positions: Mapping[str, Mapping[TopicAndPartition, Committed]], each: int, by: int
) -> dict[str, dict[TopicAndPartition, Committed]]:
    """The positions of every `each`-th group, moved on by `by` records."""
    return {
        group: {key: Committed(position.offset + by) for key, position in items.items()}
        for number, (group, items) in enumerate(positions.items())
        if number % each == 0
    }


def _committed() -> dict[str, dict[TopicAndPartition, Committed]]:
    """Positions by group, spread over the whole map."""
    positions: dict[str, dict[TopicAndPartition, Committed]] = {}
    for number in range(GROUPS):
        topics = [(number * 3 + step) % TOPICS for step in range(TOPICS_OF_A_GROUP)]
        keys = [(f"{PREFIX}{topic:03}", part) for topic in topics for part in range(PARTITIONS)]
        positions[f"{PREFIX}{number:03}"] = {
            key: Committed((number * 397 + index * 4_001) % (RUNS * RUN_RECORDS))
            for index, key in enumerate(keys)
        }
    return positions


def _fill_map(lake: Lake) -> None:
    """Fill the map as batches do: each has a run of every partition."""
    targets = [(f"{PREFIX}{topic:03}", at) for topic in range(TOPICS) for at in range(PARTITIONS)]
    for number in range(RUNS):
        first, there = number * RUN_RECORDS, number * (RUN_RECORDS + 1)
        ends = (first, first + RUN_RECORDS - 1, there, there + RUN_RECORDS - 1, RUN_RECORDS, number)
        segment = {"source_first": first, "stride": 1, "target_first": there}
        run: dict[str, Any] = dict(zip(_LONGS, ends, strict=True))
        run |= {"segments": [{**segment, "record_count": RUN_RECORDS}], "flow": FLOW}
        rows = [
            {**run, "topic": topic, "partition": partition, "target_topic": f"east.{topic}"}
            | {"target_partition": partition}
            for topic, partition in targets
        ]
        lake.append("offset_map", pa.Table.from_pylist(rows, _MAP))


class _Mapped(NotRunning):
    """A flow that has produced everything in the map."""

    def reached(self, keys: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, Reached]:
        end = RUNS * RUN_RECORDS
        return {key: Reached(end, end, f"east.{key[0]}") for key in keys}
