"""Offset syncs, as MirrorMaker 2 writes them: at both places, with pairs that are those of the
map."""

from pathlib import Path

import pytest
import yaml

from mirrorlake.mm2.formats import OffsetSync, decode_offset_sync
from tests.support.clusters import ClusterPair, own_topics
from tests.support.commands import mirrorlake
from tests.support.control import own_configs
from tests.support.kafka import create_topic, numbered, read_topic, topics_of, write
from tests.support.mirror_client import translated_by_syncs
from tests.support.replication import write_topology


@pytest.mark.parametrize("location", ["source", pytest.param("target", marks=pytest.mark.slow)])
def test_a_reader_of_offset_syncs_finds_the_pairs_of_the_map(
    clusters: ClusterPair, tmp_path: Path, topic_name: str, location: str
) -> None:
    name = {"source": "mm2-offset-syncs.west.internal", "target": "mm2-offset-syncs.east.internal"}[
        location
    ]
    address = {"source": clusters.east, "target": clusters.west}[location]
    create_topic(clusters.east, topic_name, 2)
    settings = {"emit_offset_syncs_enabled": True, "offset_syncs_topic_location": location}
    with own_topics(clusters):
        topology = write_topology(
            tmp_path, clusters.east, clusters.west, {"topics": [topic_name], **settings}
        )
        found = []
        for begin in (0, 30):
            write(clusters.east, topic_name, numbered(30, 2, begin))
            mirrorlake(topology, "run", "--once")
            (records,) = read_topic(address, name)
            found.append([decode_offset_sync(record.key, record.value) for record in records])
            assert all(len(record.value or b"") == 16 for record in records)
        assert own_configs(address, name)["cleanup.policy"] == "compact"
        first = [
            OffsetSync(topic_name, number, *pair)
            for number in (0, 1)
            for pair in ((0, 0), (14, 14))
        ]
        assert found[0] == first, "a group at the start has its pair too"
        last = [part[-1].offset for part in read_topic(clusters.west, f"east.{topic_name}")]
        assert found[1] == [
            *first,
            *(OffsetSync(topic_name, number, 29, last[number]) for number in (0, 1)),
        ]


@pytest.mark.slow
@pytest.mark.parametrize("location", ["source", "target"])
def test_mirror_makers_own_reader_goes_by_them(
    clusters: ClusterPair, tmp_path: Path, topic_name: str, location: str
) -> None:
    """The class by which MirrorMaker 2 translates positions: the newest exactly, none too far."""
    create_topic(clusters.east, topic_name)
    settings = {"emit_offset_syncs_enabled": True, "offset_syncs_topic_location": location}
    with own_topics(clusters):
        topology = write_topology(
            tmp_path, clusters.east, clusters.west, {"topics": [topic_name], **settings}
        )
        for begin in (0, 30):
            write(clusters.east, topic_name, numbered(30, 1, begin))
            mirrorlake(topology, "run", "--once")
        there = [record.offset for record in read_topic(clusters.west, f"east.{topic_name}")[0]]
        ends = ("east", clusters.east), ("west", clusters.west)
        told = translated_by_syncs(location, *ends, topic_name, 0, range(60))
    assert told[59] == there[59] and told[0] >= 0
    assert all(position <= offset for position, offset in zip(told, there, strict=True)), (
        told,
        there,
    )


@pytest.mark.wide("test_a_reader_of_offset_syncs_finds_the_pairs_of_the_map")
def test_a_topic_of_syncs_that_the_flow_did_not_make_is_left_alone(
    clusters: ClusterPair, tmp_path: Path, topic_name: str
) -> None:
    """MirrorMaker 2's, perhaps; and where they are not asked for there is none."""
    create_topic(clusters.east, topic_name)
    name = "mm2-offset-syncs.west.internal"
    with own_topics(clusters):
        topology = write_topology(tmp_path, clusters.east, clusters.west, {"topics": [topic_name]})
        write(clusters.east, topic_name, numbered(3))
        mirrorlake(topology, "run", "--once")
        assert name not in topics_of(clusters.east)
        create_topic(clusters.east, name)
        document = yaml.safe_load(topology.read_text(encoding="utf-8"))
        document["flows"]["east->west"]["emit_offset_syncs_enabled"] = True
        topology.write_text(yaml.safe_dump(document), encoding="utf-8")
        mirrorlake(topology, "run", "--once", code=1)
        assert read_topic(clusters.east, name) == [[]]
        (told,) = mirrorlake(topology, "status", code=1)["incidents"]
        assert (
            told["kind"] == "control_offset_syncs"
            and "was not made by flow east->west" in told["detail"]
        )
