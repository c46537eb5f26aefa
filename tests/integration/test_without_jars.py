"""A lake in a folder needs no jar but pyspark's own: where none can be resolved, tasks land and
produce all the same, also where Spark has to sort."""

from pathlib import Path

import pytest

from tests.support.clusters import ClusterPair
from tests.support.jars import nowhere
from tests.support.kafka import create_topic, numbered, read_topic, write
from tests.support.replication import finish, start_command, write_topology

#: So many go through Spark's tasks.
LANDING = {"small_batch_records": 0}


@pytest.mark.slow  # by the ordinary reader test_before_spark.py does without, too
@pytest.mark.parametrize("reader", ["auto", "rows"])
def test_a_run_resolves_nothing(
    clusters: ClusterPair, topic_name: str, tmp_path: Path, reader: str
) -> None:
    create_topic(clusters.east, topic_name, 2)
    write(clusters.east, topic_name, numbered(500, 2))
    flow = {"topics": [topic_name]}
    topology = write_topology(tmp_path, clusters.east, clusters.west, flow, LANDING)
    run = start_command(topology, "run", "--once", "--reader", reader, **nowhere(tmp_path / "jars"))
    assert finish(run) == 0, (tmp_path / "run.log").read_text(encoding="utf-8")[-4000:]
    assert not (tmp_path / "jars").exists()
    sides = zip(
        read_topic(clusters.east, topic_name),
        read_topic(clusters.west, f"east.{topic_name}"),
        strict=True,
    )
    for there, here in sides:
        assert [record[1:] for record in here] == [record[1:] for record in there]
