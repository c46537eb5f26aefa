"""Heartbeats topics are known by what is in them."""

import re
from typing import Any

import pytest

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.values import Row
from mirrorlake.lake.objectives import heartbeats_pattern
from mirrorlake.mm2 import heartbeat_topics
from mirrorlake.mm2.formats import Heartbeat, encode_heartbeat
from mirrorlake.mm2.heartbeat_topics import (
    HeartbeatTopics,
    are_heartbeats,
    holds_other_records,
    is_heartbeat,
    may_be_heartbeats,
)
from mirrorlake.testing import MemoryCluster, MemoryLake

BEAT = encode_heartbeat(Heartbeat("east", "west", 1_700_000_000_000))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (*BEAT, True),
        (BEAT[0], BEAT[1] + b"x", False),
        (BEAT[0] + b"x", BEAT[1], False),
        (None, BEAT[1], False),
        (BEAT[0], None, False),
        (b"device-7", b'{"alive": true}', False),
        (b"\x00\x01\xff\x00\x01a", BEAT[1], False),
    ],
)
def test_a_heartbeat_is_known_to_its_last_byte(
    key: bytes | None, value: bytes | None, said: bool
) -> None:
    assert is_heartbeat(key, value) == said


def test_a_topic_is_told_by_its_records_and_an_empty_one_by_its_name() -> None:
    assert are_heartbeats([BEAT, BEAT], "device.heartbeats")
    assert not are_heartbeats([BEAT, (b"k", b"v")], "heartbeats")
    assert are_heartbeats([], "heartbeats") and not are_heartbeats([], "device.heartbeats")


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("heartbeats", True),
        ("east.heartbeats", True),
        ("a_b_heartbeats", True),
        ("a-heartbeats", True),
        ("heartbeats.x", False),
        ("myheartbeats", False),
        ("heartbeat", False),
    ],
)
def test_names_that_are_looked_at(topic: str, said: bool) -> None:
    assert may_be_heartbeats(topic) == said


def test_the_regex_finds_these_names_alone() -> None:
    pattern = heartbeats_pattern(["heartbeats", "a-b.heartbeats"])
    names = ("heartbeats", "a-b.heartbeats", "a-bxheartbeats", "c.heartbeats", "heartbeats2")
    assert [name for name in names if re.search(pattern, name)] == ["heartbeats", "a-b.heartbeats"]
    assert not re.search(heartbeats_pattern([]), "heartbeats")


def rows_of(*records: tuple[bytes, bytes]) -> Any:
    """What stands for the first records of partitions 0, 1 … of any topic."""

    def first_rows(_alias: str, _settings: object, offsets: Any) -> dict[Any, Row]:
        return {key: Row(0, 1, *records[key[1]], None) for key in offsets}

    return first_rows


@pytest.mark.parametrize("noted", [None, "^$", "^(?:heartbeats)$"])
def test_a_silent_leader_makes_no_topic_one_of_heartbeats(
    monkeypatch: pytest.MonkeyPatch, noted: str | None
) -> None:
    """`verify` would leave records of people aside. What was known before goes on counting."""
    changed: list[set[str]] = []
    monkeypatch.setattr(
        heartbeat_topics,
        "note_heartbeat_topics",
        lambda _lake, _flow, topics: changed.append(topics),
    )
    monkeypatch.setattr(heartbeat_topics, "first_rows", rows_of((b"device 7", b"71 bpm"), BEAT))
    lake = MemoryLake()
    rows = [] if noted is None else [{"flow": "f", "heartbeat_topics": noted}]
    monkeypatch.setattr(lake, "ask_table", lambda _table: rows)
    east = MemoryCluster("east", {"heartbeats": [9, 9]})
    east.silent = {("heartbeats", 0)}
    topics = HeartbeatTopics("f", lake, east, dict, lambda _: True)
    topics.look()
    assert ("heartbeats" in topics) == (noted == "^(?:heartbeats)$")
    east.silent = set()
    topics.look()
    assert "heartbeats" not in topics and changed[-1] == set()


def test_no_heartbeat_is_written_to_a_topic_that_cannot_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeat_topics, "first_rows", rows_of((b"device 7", b"71 bpm"), BEAT))
    east = MemoryCluster("east", {"heartbeats": [9, 9]})
    east.silent = {("heartbeats", 0)}
    with pytest.raises(ClusterUnreachable, match="no heartbeat is written there meanwhile"):
        holds_other_records(east, {}, "heartbeats")
    east.silent = {("heartbeats", 1)}
    assert holds_other_records(east, {}, "heartbeats"), "one record of people is enough"
    assert not holds_other_records(east, {}, "none"), "it is still to be made"
