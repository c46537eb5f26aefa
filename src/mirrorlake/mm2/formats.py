"""MirrorMaker 2's own records, byte for byte: checkpoints, heartbeats, offset syncs (KIP-382;
docs/mm2.md, "Record formats"). Pure.

All numbers are big-endian; a text is an int16 byte length and UTF-8. Values of checkpoints and
heartbeats begin with a version, 0; keys and offset syncs have none. Decoding follows MirrorMaker
2's reader: it ignores trailing bytes and other versions, and refuses too short records.
"""

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError

from mirrorlake.errors import InputError

_VERSION = 0
_TEXT, _INT, _LONG, _LONGS = Struct(">h"), Struct(">i"), Struct(">q"), Struct(">qq")
_LONGEST_TEXT = 32_767


@dataclass(frozen=True)
class MirrorCheckpoint:
    """A position of a group on both clusters, a record of `<source>.checkpoints.internal`.

    `topic` is named as on the target; `upstream` is the position at the source, `downstream` that
    at the target; `metadata` is the group's commit metadata, "" for none.
    """

    group_id: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""


@dataclass(frozen=True)
class Heartbeat:
    """A heartbeat of a flow, a record of `heartbeats`; `timestamp`: when sent, ms since 1970."""

    source: str
    target: str
    timestamp: int


@dataclass(frozen=True)
class OffsetSync:
    """The source and target offset of one record, as a record of
    `mm2-offset-syncs.<other>.internal`; `topic` is named as at the source."""

    topic: str
    partition: int
    upstream: int
    downstream: int


def encode_checkpoint(checkpoint: MirrorCheckpoint) -> tuple[bytes, bytes]:
    """Key and value. Raises InputError if it does not fit, such as a text above 32,767 bytes."""
    key = _text(checkpoint.group_id) + _text(checkpoint.topic) + _number(_INT, checkpoint.partition)
    offsets = _number(_LONGS, checkpoint.upstream, checkpoint.downstream)
    return key, _TEXT.pack(_VERSION) + offsets + _text(checkpoint.metadata)


def encode_heartbeat(heartbeat: Heartbeat) -> tuple[bytes, bytes]:
    """Key and value. Raises InputError for what the format cannot hold."""
    value = _TEXT.pack(_VERSION) + _number(_LONG, heartbeat.timestamp)
    return _text(heartbeat.source) + _text(heartbeat.target), value


def decode_heartbeat(key: bytes | None, value: bytes | None) -> Heartbeat:
    """Decode a heartbeat. Raises InputError if the record is not one."""
    names, facts = _FieldDecoder("heartbeat", key), _FieldDecoder("heartbeat", value)
    facts.numbers(_TEXT)
    source, target, (timestamp,) = names.text(), names.text(), facts.numbers(_LONG)
    return Heartbeat(source, target, timestamp)


def encode_offset_sync(sync: OffsetSync) -> tuple[bytes, bytes]:
    """Key and value. Raises InputError for what the format cannot hold."""
    return _text(sync.topic) + _number(_INT, sync.partition), _number(
        _LONGS, sync.upstream, sync.downstream
    )


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    """Decode an offset sync. Raises InputError if the record is not one."""
    names, facts = _FieldDecoder("offset sync", key), _FieldDecoder("offset sync", value)
    topic, (partition,) = names.text(), names.numbers(_INT)
    upstream, downstream = facts.numbers(_LONGS)
    return OffsetSync(topic, partition, upstream, downstream)


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) > _LONGEST_TEXT:
        raise InputError(
            f"a text of {len(data):,} bytes is too long for MirrorMaker 2's format: "
            f"{text[:40]!r}..."
        )
    return _TEXT.pack(len(data)) + data


def _number(kind: Struct, *values: int) -> bytes:
    try:
        return kind.pack(*values)
    except StructError:
        raise InputError(
            f"{', '.join(map(str, values))} is too big for MirrorMaker 2's format"
        ) from None


class _FieldDecoder:
    """Reads fields one after another; raises InputError if the record ends too early."""

    def __init__(self, what: str, data: bytes | None) -> None:
        self._what = what
        self._data = data
        self._at = 0

    def numbers(self, kind: Struct) -> tuple[int, ...]:
        return kind.unpack(self._take(kind.size))

    def text(self) -> str:
        (length,) = self.numbers(_TEXT)
        # Like Java, so that a name with invalid bytes reads the same on both sides.
        return self._take(length).decode(errors="replace")

    def _take(self, length: int) -> bytes:
        taken = (
            None if self._data is None or length < 0 else self._data[self._at : self._at + length]
        )
        if taken is None or len(taken) < length:
            raise InputError(f"a record is not a {self._what} of MirrorMaker 2: it ends too early")
        self._at += length
        return taken
