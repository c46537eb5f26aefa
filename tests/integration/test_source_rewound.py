"""A log at the source that goes back, as by an unclean leader election or a restored disk: found,
told, decided."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import MirrorlakeError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.translate import translate
from mirrorlake.run.resolve import Wanted, resolve
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, read_topic
from tests.support.lake_rows import now_of
from tests.support.lanes import BOTH_LANES
from tests.support.replication import FLOW, lake_of, replicate_once, write_topology
from tests.support.rewind import rewind
from tests.support.topologies import fill, incidents, map_pairs, texts, values

pytestmark = [pytest.mark.slow, *BOTH_LANES]


@pytest.mark.law("nothing silently", "kept by generation")
def test_a_log_that_went_back_stops_its_partition_until_somebody_decides(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """Partition 0 has grown beyond its old end again when it is looked at; partition 1 did
    nothing."""
    if clusters.embedded is None:
        pytest.skip("the brokers' disks are not ours to change")
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [f"{topic_name}.*"]}
    )
    back, well = f"{topic_name}-back", f"{topic_name}-well"
    for topic in (back, well):
        create_topic(clusters.east, topic, 2)
        for number in range(10):
            fill(clusters.east, topic, "a", 10, start=10 * number)
    replicate_once(spark, topology)
    rewind(clusters.embedded["east"], f"{back}-0", 30)
    for topic in (back, well):
        fill(clusters.east, topic, "b", 100)
    said = []
    for _ in range(2):
        # a second run finds it still; one may have more to say of brokers that were just started
        with pytest.raises(MirrorlakeError) as error:
            replicate_once(spark, topology)
        said.append(str(error.value))
    assert any(f"{back}-0" in text for text in said), said
    lake = lake_of(spark, topology)
    told = [
        (row["topic"], row["partition"], row["first_offset"], row["last_offset"])
        for row in incidents(lake, "source_rewound")
    ]
    assert told == [(back, 0, 30, 49)]
    target = read_topic(clusters.west, f"east.{back}")
    assert values(target[0]) == texts("a", 100)
    assert values(target[1]) == texts("a", 100, partition=1) + texts("b", 100, partition=1)
    assert values(read_topic(clusters.west, f"east.{well}")[0]) == texts("a", 100) + texts("b", 100)
    resolve(
        Deployment.opened(lake, Connections(load_topology(topology))),
        Wanted(topic=back),
        "new-generation",
    )
    fill(clusters.east, back, "c", 10)
    replicate_once(spark, topology)
    assert not incidents(lake)
    target = read_topic(clusters.west, f"east.{back}")
    assert values(target[0]) == texts("a", 100) + texts("b", 100) + texts("c", 10), (
        "nothing of the new log is skipped"
    )
    assert values(target[1])[-5:] == texts("c", 10, partition=1)
    translated(
        lake, back, [record.offset for record in target[0]], [record.offset for record in target[1]]
    )


def translated(lake, topic: str, first: list[int], second: list[int]) -> None:  # type: ignore[no-untyped-def]
    """Positions below the place where the log went another way are those of the records staged
    before."""
    assert map_pairs(lake, FLOW, topic, 0, 1) == list(zip(range(30, 85), first[50:], strict=True))
    for offset, there in ((5, first[5]), (29, first[29]), (30, first[50]), (84, first[104])):
        position = translate(now_of(lake), FLOW, topic, 0, offset)
        assert (position.offset, position.exact) == (there, True), offset
        back = translate(now_of(lake), FLOW, f"east.{topic}", 0, there, reverse=True)
        assert (back.offset, back.exact) == (offset, True), offset
    for offset in (5, 49, 104):
        assert translate(now_of(lake), FLOW, topic, 1, offset).offset == second[offset]
