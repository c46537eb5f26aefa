"""MirrorMaker 2's records are byte for byte its own, and come back as they were."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.config.topology import Topology
from mirrorlake.errors import InputError
from mirrorlake.mm2.formats import (
    Heartbeat,
    MirrorCheckpoint,
    OffsetSync,
    decode_heartbeat,
    decode_offset_sync,
    encode_checkpoint,
    encode_heartbeat,
    encode_offset_sync,
)
from mirrorlake.mm2.topics import checkpoints_topic, internal_factor, offset_syncs_place

GOLDEN = [
    (
        encode_checkpoint,
        None,
        MirrorCheckpoint("grp", "primary.t1", 3, 1234567890123, 42),
        "0003677270000a7072696d6172792e743100000003",
        "00000000011f71fb04cb000000000000002a0000",
    ),
    (
        encode_checkpoint,
        None,
        MirrorCheckpoint("gré", "t", 0, upstream=1, downstream=2, metadata="mé"),
        "00046772c3a900017400000000",
        "00000000000000000001000000000000000200036dc3a9",
    ),
    (
        encode_heartbeat,
        decode_heartbeat,
        Heartbeat("primary", "backup", 1700000000000),
        "00077072696d61727900066261636b7570",
        "00000000018bcfe56800",
    ),
    (
        encode_offset_sync,
        decode_offset_sync,
        OffsetSync("t1", 3, 100, 200),
        "0002743100000003",
        "000000000000006400000000000000c8",
    ),
]
"""Vectors of each format (docs/mm2.md, "Record formats"), made by MirrorMaker's own classes."""
Encode = Callable[[object], tuple[bytes, bytes]]
Decode = Callable[[bytes | None, bytes | None], object]

TEXT = st.text(max_size=300)
PARTITION = st.integers(0, 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.one_of(
    st.builds(Heartbeat, TEXT, TEXT, LONG), st.builds(OffsetSync, TEXT, PARTITION, LONG, LONG)
)
CODECS = {
    Heartbeat: (encode_heartbeat, decode_heartbeat),
    OffsetSync: (encode_offset_sync, decode_offset_sync),
}


@pytest.mark.parametrize(("encode", "decode", "record", "key", "value"), GOLDEN)
def test_golden_vectors(
    encode: Encode, decode: Decode | None, record: object, key: str, value: str
) -> None:
    assert encode(record) == (bytes.fromhex(key), bytes.fromhex(value))
    if decode is not None:
        assert decode(bytes.fromhex(key), bytes.fromhex(value)) == record


@given(RECORDS, st.binary(max_size=5))
def test_whatever_was_encoded_comes_back(record: Heartbeat | OffsetSync, behind: bytes) -> None:
    encode, decode = CODECS[type(record)]
    key, value = encode(record)
    assert decode(key, value) == record
    assert decode(key + behind, value + behind) == record, (
        "bytes behind the end are ignored, as MirrorMaker 2 does"
    )


@given(RECORDS, st.data())
def test_what_is_too_short_is_refused(record: Heartbeat | OffsetSync, data: st.DataObject) -> None:
    encode, decode = CODECS[type(record)]
    key, value = encode(record)
    with pytest.raises(InputError, match="ends too early"):
        decode(key[: data.draw(st.integers(0, len(key) - 1))], value)
    with pytest.raises(InputError, match="ends too early"):
        decode(key, value[: data.draw(st.integers(0, len(value) - 1))])


@pytest.mark.parametrize("decode", [decode_heartbeat, decode_offset_sync])
def test_a_tombstone_is_no_record(decode: Decode) -> None:
    for key, value in ((None, b"\0" * 30), (b"\0" * 30, None)):
        with pytest.raises(InputError):
            decode(key, value)


def test_another_version_is_read_as_the_first_and_a_negative_length_is_refused() -> None:
    beat = Heartbeat("a", "b", 1)
    key, value = encode_heartbeat(beat)
    assert decode_heartbeat(key, b"\x00\x07" + value[2:]) == beat
    with pytest.raises(InputError):
        decode_heartbeat(b"\xff\xff" + key[2:], value)


@pytest.mark.parametrize(
    "checkpoint",
    [
        MirrorCheckpoint("g" * 32_768, "t", 0, 1, 2),
        MirrorCheckpoint("g", "t", 2**31, 1, 2),
        MirrorCheckpoint("g", "t", 0, 2**63, 2),
    ],
)
def test_what_the_format_cannot_hold_is_refused(checkpoint: MirrorCheckpoint) -> None:
    with pytest.raises(InputError, match="MirrorMaker 2's format"):
        encode_checkpoint(checkpoint)


@pytest.mark.parametrize(
    ("settings", "checkpoints", "syncs"),
    [
        ({}, "A.checkpoints.internal", "mm2-offset-syncs.A.internal"),
        ({"policy": "identity"}, "A.checkpoints.internal", "mm2-offset-syncs.A.internal"),
        (
            {"replication_policy_separator": "_"},
            "A_checkpoints_internal",
            "mm2-offset-syncs_A_internal",
        ),
        (
            {
                "replication_policy_separator": "_",
                "replication_policy_internal_topic_separator_enabled": False,
            },
            "A.checkpoints.internal",
            "mm2-offset-syncs.A.internal",
        ),
    ],
)
def test_internal_names_follow_the_separator_settings(
    settings: dict[str, object], checkpoints: str, syncs: str
) -> None:
    document = {
        "clusters": {alias: {"bootstrap_servers": alias} for alias in "AB"},
        "lake": {"path": "./lake"},
        "flows": {"A->B": {"offset_syncs_topic_location": "target", **settings}},
    }
    flow = Topology.model_validate(document).flow("A->B")
    assert checkpoints_topic(flow) == checkpoints
    assert offset_syncs_place(flow) == ("B", syncs)
    assert flow.naming.is_internal(checkpoints) and flow.naming.is_internal(syncs), (
        "so that no flow mirrors them"
    )


@pytest.mark.parametrize(
    ("asked", "brokers", "factor"),
    [(None, 1, 1), (None, 3, 3), (None, 9, 3), (1, 9, 1), (5, 2, 2), (None, 0, 1)],
)
def test_factor_of_internal_topics(asked: int | None, brokers: int, factor: int) -> None:
    assert internal_factor(asked, brokers) == factor
