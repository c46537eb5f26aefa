"""The counting of requests by which a test says what a run asks."""

import struct
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.slow_link import Requests


@given(st.lists(st.tuples(st.integers(0, 90), st.binary(max_size=20))), st.integers(1, 40))
def test_each_request_is_counted_however_its_bytes_come(
    requests: list[tuple[int, bytes]], size: int
) -> None:
    sent = b"".join(struct.pack(">ih", len(body) + 2, kind) + body for kind, body in requests)
    counts: Counter[int] = Counter()
    taking = Requests(counts)
    for start in range(0, len(sent), size):
        taking.take(sent[start : start + size])
    assert counts == Counter(kind for kind, _ in requests)
