"""Heartbeats topics are known by what is in them."""

import re

import pytest

from mirrorlake.lake.heartbeats import heartbeats_pattern
from mirrorlake.mm2.formats import Heartbeat, encode_heartbeat
from mirrorlake.mm2.heartbeat_topics import are_heartbeats, is_heartbeat, may_be_heartbeats

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
