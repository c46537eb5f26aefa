"""The digest: one record has one, two records have two, and who reads docs/trust.md gets the
same."""

import hashlib
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.produce.encoding import RECORDS, Hops, encodings
from mirrorlake.produce.provenance import HEADER
from mirrorlake.verify import digest
from mirrorlake.verify.digest import Twins, digests_of, range_digest

BYTES = st.none() | st.binary(max_size=6)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=3), BYTES), max_size=3)
RECORD = st.tuples(st.integers(-1, 2**53), BYTES, BYTES, HEADERS)
Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]


def batch_of(records: list[Record]) -> pa.RecordBatch:
    rows = [
        {
            "offset": at,
            "timestamp": when,
            "key": key,
            "value": value,
            "headers": None
            if headers is None
            else [{"key": name, "value": text} for name, text in headers],
        }
        for at, (when, key, value, headers) in enumerate(records)
    ]
    return pa.RecordBatch.from_pylist(rows, RECORDS)


def by_the_book(record: Record) -> bytes:
    """The encoding as docs/trust.md has it, in plain Python."""
    when, key, value, headers = record

    def length(text: bytes | None) -> int:
        return -1 if text is None else len(text)

    encoded = struct.pack(">qiii", when, length(key), length(value), len(headers or ()))
    encoded += (key or b"") + (value or b"")
    for name, text in headers or ():
        encoded += (
            struct.pack(">ii", len(name.encode()), length(text)) + name.encode() + (text or b"")
        )
    return encoded


def same(one: Record, other: Record) -> bool:
    return (*one[:3], one[3] or []) == (*other[:3], other[3] or [])


@given(st.lists(RECORD, max_size=8))
def test_it_is_what_the_documentation_says(records: list[Record]) -> None:
    batch = batch_of(records)
    assert encodings(batch).to_pylist() == [by_the_book(record) for record in records]
    found = digests_of([batch])
    digests = [hashlib.sha256(by_the_book(record)).digest() for record in records]
    assert found.digests == digests and found.offsets.tolist() == list(range(len(records)))
    assert range_digest(found.digests) == hashlib.sha256(b"".join(digests)).hexdigest()


@given(RECORD, RECORD)
def test_two_records_have_two_encodings(one: Record, other: Record) -> None:
    first, second = encodings(batch_of([one, other])).to_pylist()
    assert (first == second) == same(one, other)


@given(st.lists(RECORD, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_how_it_was_cut_into_batches_does_not_matter(
    records: list[Record], cut: int, other: int
) -> None:
    whole = batch_of(records)
    first, second = sorted((min(cut, len(records)), min(other, len(records))))
    parts = [whole.slice(0, first), whole.slice(first, second - first), whole.slice(second)]
    assert digests_of(parts).digests == digests_of([whole]).digests


@given(st.lists(RECORD, min_size=2, max_size=8), st.data())
def test_the_order_matters(records: list[Record], data: Any) -> None:
    mixed = data.draw(st.permutations(records))
    one, other = (range_digest(digests_of([batch_of(part)]).digests) for part in (records, mixed))
    assert (one == other) == all(map(same, records, mixed))


@given(
    RECORD,
    st.lists(st.sampled_from([b"here", b"there", b"elsewhere", None]), max_size=3),
    st.integers(0, 3),
)
def test_headers_of_provenance_are_no_part_of_it(
    record: Record, hops: list[bytes | None], at: int
) -> None:
    headers = list(record[3] or [])
    for hop in hops:
        headers.insert(min(at, len(headers)), (HEADER, hop))
    marked = (*record[:3], headers)
    ends = Hops("here", "there")
    plain, found = (digests_of([batch_of([item])], ends) for item in (record, marked))
    assert plain.digests == found.digests
    assert found.own.tolist() == [b"here" in hops] and found.echo.tolist() == [b"there" in hops]


SIDE = st.lists(RECORD, max_size=6)


@given(
    SIDE, SIDE | st.none(), SIDE | st.none(), st.integers(0, 6), st.sampled_from([0, 40, 1 << 20])
)
def test_twins_have_the_digests_that_each_would_have_alone(
    stage: list[Record],
    source: list[Record] | None,
    target: list[Record] | None,
    cut: int,
    limit: int,
) -> None:
    """Whether a side is the same (None), another one, or too large to be held."""
    twins = Twins()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(digest, "TWIN_BYTES", limit)
        for records in (stage, source, target):
            batch = batch_of(stage if records is None else records)
            parts = [batch.slice(0, cut), batch.slice(cut)] if cut < len(batch) else [batch]
            found, alone = twins.side(parts), digests_of([batch])
            assert found.digests == alone.digests
            assert found.offsets.tolist() == alone.offsets.tolist()
            assert found.timestamps.tolist() == alone.timestamps.tolist()
