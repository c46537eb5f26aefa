"""The digests of a record and of a range of records (docs/trust.md), which can be recomputed.

A record's digest is SHA-256 over its encoding (`produce/encoding.py`); a range's is SHA-256 over
the digests of its records, one after another.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mirrorlake.produce.encoding import RECORDS, Hops, as_sent, digests, numbers_of
from mirrorlake.produce.provenance import came_from
from mirrorlake.verify.sides import Side

#: How much of a side is held at a time, in bytes of Arrow's memory.
TWIN_BYTES = 64 << 20


def range_digest(digests: Iterable[bytes]) -> str:
    """The digest of a range, in hexadecimal digits, from its records' digests in their order."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


class Twins:
    """The digests of several sides of one range, usually the same: one that equals the first, byte
    by byte, takes over its digests unhashed. One larger than TWIN_BYTES is hashed as it is read."""

    def __init__(self, hops: Hops | None = None) -> None:
        self._hops = hops
        self._known: tuple[pa.Table, Side] | None = None

    def side(self, batches: Iterable[pa.RecordBatch]) -> Side:
        """The digests of a side's records, given as RECORDS."""
        rest, gathered, size = iter(batches), list[pa.RecordBatch](), 0
        for batch in rest:
            gathered.append(batch)
            size += batch.nbytes
            if size > TWIN_BYTES:
                return digests_of(chain(gathered, rest), self._hops)
        rows = pa.Table.from_batches(gathered, RECORDS)
        if self._known is None:
            self._known = rows, digests_of(gathered, self._hops)
            return self._known[1]
        known, side = self._known
        if all(rows.column(name).equals(known.column(name)) for name in RECORDS.names[1:]):
            return replace(side, offsets=numbers_of(rows.column("offset")))
        return digests_of(gathered, self._hops)


def digests_of(batches: Iterable[pa.RecordBatch], hops: Hops | None = None) -> Side:
    """The digests of records, given as RECORDS."""
    offsets, timestamps, hashed = [np.empty(0, np.int64)], [np.empty(0, np.int64)], list[bytes]()
    marks = [np.empty(0, bool)], [np.empty(0, bool)]
    sent: dict[bytes, bytes] = {}
    for batch in batches:
        offsets.append(numbers_of(batch.column("offset")))
        timestamps.append(numbers_of(batch.column("timestamp")))
        hashed += digests(batch, hops)
        sent.update(_sent_instead(batch, hops))
        if hops is not None:
            for marks_of_cluster, cluster in zip(
                marks, (hops.target_id, hops.source_id), strict=True
            ):
                marks_of_cluster.append(came_from(batch.column("headers"), cluster))
    joined = [np.concatenate(parts) for parts in (offsets, timestamps, *marks)]
    return Side(joined[0], joined[1], hashed, echo=joined[2], own=joined[3], sent=sent)


def _sent_instead(batch: pa.RecordBatch, hops: Hops | None) -> dict[bytes, bytes]:
    """For records that librdkafka cannot send unchanged: the sent form's digest, by their own."""
    zero = batch.filter(pc.equal(batch.column("timestamp"), 0))
    if not zero.num_rows:
        return {}
    return dict(zip(*(digests(rows, hops) for rows in (zero, as_sent(zero))), strict=True))
