"""A run over few records in a folder has no Spark session, and nothing that it has to find out
reaches for one.

Each path of planning is taken with Spark out of reach: losses, rewinds, topics made again,
generations, reading again.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.clusters import ClusterPair
from tests.support.commands import mirrorlake, open_incidents
from tests.support.kafka import create_topic, delete_topic, read_topic, truncate
from tests.support.replication import FLOW, write_topology
from tests.support.rewind import rewind
from tests.support.topologies import fill, texts, values
from tests.support.trimmed_stage import trimmed
from tests.support.waiting import until


@pytest.mark.wide(
    "integration/test_laws_on_each_way.py::test_what_the_source_lost_stops_its_partition_and_is_told"
)
def test_what_is_lost_stops_alone_and_the_others_go_on(
    clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """A log that went back, a topic made again, records that retention took, and a topic that is
    well."""
    if clusters.embedded is None:
        pytest.skip("the brokers' disks are not ours to change")
    topology = write_topology(
        tmp_path, clusters.east, clusters.west, {"topics": [f"{topic_name}.*"]}
    )
    back, made, lost, well = (f"{topic_name}-{name}" for name in ("back", "made", "lost", "well"))
    for topic in (back, made, lost, well):
        create_topic(clusters.east, topic)
        for number in range(4):  # batches of their own, at which a log can be cut
            fill(clusters.east, topic, "a", 5, 1, start=5 * number)
    mirrorlake(topology, "run", "--once")
    fill(clusters.east, lost, "b", 20, 1)
    truncate(clusters.east, lost, 30)
    delete_topic(clusters.east, made)
    until(lambda: _made(clusters.east, made), "the topic can be made again")
    rewind(clusters.embedded["east"], f"{back}-0", 10)
    for topic, count in ((back, 100), (made, 7), (well, 10)):
        fill(clusters.east, topic, "c", count, 1)
    mirrorlake(topology, "run", "--once", code=1)
    assert open_incidents(topology, code=1) == [
        ("source_rewound", back, 0, 10, 19),
        ("source_truncated", lost, 0, 20, 29),
        ("topic_recreated", made, None, None, None),
    ]
    there = {
        topic: values(read_topic(clusters.west, f"east.{topic}")[0])
        for topic in (back, made, lost, well)
    }
    assert there[well] == texts("a", 20, 1) + texts("c", 10, 1)
    assert there[back] == there[made] == there[lost] == texts("a", 20, 1)

    for topic, choice in ((back, "new-generation"), (made, "new-generation"), (lost, "continue")):
        mirrorlake(topology, "resolve", "--topic", topic, "--choice", choice)
    mirrorlake(topology, "run", "--once")
    assert open_incidents(topology, code=0) == []
    records = {topic: read_topic(clusters.west, f"east.{topic}")[0] for topic in (back, made, lost)}
    there = {topic: values(found) for topic, found in records.items()}
    assert there[back] == texts("a", 20, 1) + texts("c", 100, 1)
    assert there[made] == texts("a", 20, 1) + texts("c", 7, 1)
    assert there[lost] == texts("a", 20, 1) + texts("b", 20, 1)[10:]
    translated = mirrorlake(
        topology, "translate", *f"--flow {FLOW} --topic {back} --partition 0 --offset 12".split()
    )
    assert (translated["offset"], translated["exact"]) == (records[back][22].offset, True)


@pytest.mark.slow
def test_deleted_records_are_read_again(
    spark: SparkSession, clusters: ClusterPair, topic_name: str, tmp_path: Path
) -> None:
    """What brings back what `maintain` deleted has no session."""
    topology = trimmed(spark, clusters, topic_name, tmp_path)
    mirrorlake(topology, "run", "--once", code=1)
    assert open_incidents(topology, code=1) == [("stage_trimmed", topic_name, 0, 30, 48)]
    mirrorlake(topology, "resolve", "--topic", topic_name, "--choice", "read-again")
    mirrorlake(topology, "run", "--once")
    target = read_topic(clusters.west, f"east.{topic_name}")[0]
    assert [record.value for record in target] == [
        record.value for record in read_topic(clusters.east, topic_name)[0]
    ]
    assert [int((record.value or b"").split(b"|")[0]) for record in target] == list(range(50))


def _made(bootstrap: str, topic: str) -> bool:
    """Whether a topic could be made; the cluster may still be about to delete another one of its
    name."""
    try:
        create_topic(bootstrap, topic)
    except Exception as error:
        if "exists" not in str(error) and "marked for deletion" not in str(error):
            raise
        return False
    return True
