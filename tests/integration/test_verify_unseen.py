"""`verify` says what it did not see: a mirror that is gone, and all that was selected and is not at the target."""

from pathlib import Path
from typing import Any

from tests.integration.test_without_a_session import mirrorlake
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, delete_topic, read_topic, topics_of
from tests.support.replication import write_topology
from tests.support.topologies import fill, texts, until, values

COUNT = 20


def scene(clusters: ClusterPair, directory: Path, topic: str, **settings: Any) -> Path:
    """A flow of one topic of COUNT records, at the target."""
    topology = write_topology(directory, clusters.east, clusters.west, {"topics": [f"{topic}.*"], **settings})
    create_topic(clusters.east, topic)
    fill(clusters.east, topic, "a", COUNT, 1)
    mirrorlake(topology, "run", "--once")
    return topology


def delete_mirror(clusters: ClusterPair, topic: str) -> None:
    delete_topic(clusters.west, f"east.{topic}")
    until(lambda: f"east.{topic}" not in topics_of(clusters.west), "the mirror is gone")


def places(rows: list[dict[str, Any]], column: str) -> list[tuple[Any, ...]]:
    """Where, and what of a column."""
    return [(row["topic"], row["partition"], row["first_offset"], row["last_offset"], row[column]) for row in rows]


def shares(topology: Path, code: int) -> list[tuple[str, int, float]]:
    """What `status` says of proofs."""
    rows = mirrorlake(topology, "status", code=code)["proofs"]
    return [(row["topic"], row["mapped_records"], row["proven_share"]) for row in rows]


def test_a_mirror_that_is_gone_is_not_proven(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> None:
    """Whether anybody has noticed yet or not, and until its successor was compared."""
    topology = scene(clusters, tmp_path, topic_name)
    assert mirrorlake(topology, "verify")["proven"] == COUNT
    assert shares(topology, code=0) == [(topic_name, COUNT, 1.0)]
    delete_mirror(clusters, topic_name)
    gone = [(topic_name, 0, 0, COUNT - 1, "target_gone")]
    page = tmp_path / "evidence.html"
    for told in (False, True):  # the second time `run` has reported it
        found = mirrorlake(topology, "verify", f"--report={page}", code=1)
        assert places(found["differences"], "kind") == gone
        assert (found["records"], found["proven_before"]) == (0, 0)
        assert 'class="bad"' in page.read_text(encoding="utf-8")
        assert shares(topology, code=1) == [(topic_name, COUNT, 0.0)]
        kinds = [row["kind"] for row in mirrorlake(topology, "status", code=1)["incidents"]]
        assert kinds == ["target_recreated"], "an operator hears of it once"
        if not told:
            mirrorlake(topology, "run", "--once", code=1)
    mirrorlake(topology, "resolve", "--topic", topic_name, "--choice", "again")
    mirrorlake(topology, "run", "--once")
    assert shares(topology, code=0) == [(topic_name, COUNT, 0.0)], "what the topic before it had proves nothing"
    found = mirrorlake(topology, "verify")
    assert (found["records"], found["proven"], found["proven_before"]) == (COUNT, COUNT, 0)
    assert shares(topology, code=0) == [(topic_name, COUNT, 1.0)]
    assert values(read_topic(clusters.west, f"east.{topic_name}")[0]) == texts("a", COUNT, 1)


def test_a_mirror_that_nobody_mirrors_any_more_may_go(clusters: ClusterPair, topic_name: str, tmp_path: Path) -> None:
    topology = scene(clusters, tmp_path, topic_name)
    mirrorlake(topology, "verify")
    write_topology(tmp_path, clusters.east, clusters.west, {"topics": ["another"]})
    delete_mirror(clusters, topic_name)
    found = mirrorlake(topology, "verify")
    assert (found["differences"], found["proven_before"]) == ([], 0)
