"""Provenance: what has been on the target is left out, and each hop leaves its name."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.produce.batch import NOTHING_MAPPED, PartitionPlan
from mirrorlake.produce.provenance import HEADER, Provenance, without_echoes

PLAN = PartitionPlan("t", 0, "east.t", floor=NOTHING_MAPPED, first=0, last=9)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
HOP = Provenance("from-here", "to-there")

Headers = list[tuple[str, bytes | None]] | None


def kept(rows: list[Headers], provenance: Provenance | None = HOP, skip: int = 0) -> list[int]:
    """The offsets that go on; `skip` rows are cut off in front, as a chunk of a larger batch is."""
    listed = [
        None if row is None else [{"key": key, "value": value} for key, value in row]
        for row in rows
    ]
    batch = pa.record_batch(
        {"offset": pa.array(range(len(rows)), pa.int64()), "headers": pa.array(listed, HEADERS)}
    )
    found = list(without_echoes(iter([(PLAN, batch.slice(skip))]), provenance))
    return [offset for _, part in found for offset in part.column("offset").to_pylist()]


def test_what_came_from_the_target_is_left_out() -> None:
    rows: list[Headers] = [
        None,
        [],
        [(HEADER, b"to-there")],
        [("other", b"to-there"), (HEADER, b"elsewhere")],
        [(HEADER, b"elsewhere"), ("x", None), (HEADER, b"to-there")],
        [(HEADER, None)],
        [(HEADER, b"to-there-too")],
    ]
    assert kept(rows) == [0, 1, 3, 5, 6]
    assert kept(rows, skip=2) == [3, 5, 6]
    assert kept(rows, None) == list(range(7))
    assert kept([[(HEADER, b"to-there")]]) == []


_header = st.tuples(
    st.sampled_from([HEADER, "x"]), st.sampled_from([None, b"", b"to-there", b"elsewhere"])
)


@given(st.lists(st.none() | st.lists(_header, max_size=4), max_size=12), st.integers(0, 3))
def test_exactly_those_with_a_header_that_names_the_target_are_left_out(
    rows: list[Headers], skip: int
) -> None:
    wanted = [
        n for n, row in enumerate(rows) if n >= skip and (HEADER, b"to-there") not in (row or [])
    ]
    assert kept(rows, skip=skip) == wanted


def test_what_becomes_of_headers() -> None:
    assert (HOP.added, HOP.removed) == ((HEADER, b"from-here"), None)
    last = Provenance("from-here", "to-there", strip=True)
    assert (last.added, last.removed) == (None, HEADER)
