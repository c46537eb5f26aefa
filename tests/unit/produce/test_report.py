"""How late records were, as a task reports it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorlake.offsets.progress import NOTHING_MAPPED
from mirrorlake.produce.batch import PartitionPlan
from mirrorlake.produce.report import LATENCY, Ended, Progress, _percentiles, measure, result_of

PLAN = PartitionPlan("t", 0, "east.t", floor=NOTHING_MAPPED, first=0, last=9)
SENT_MS, LANDED_MS, ACKNOWLEDGED_MS = (1_000, 1_500, 2_001), 2_000, 3_000


@pytest.mark.parametrize(
    "unit", ["ms", "us"], ids=["as a source gives them", "as the stage has them"]
)
def test_latency_is_in_milliseconds_and_negative_where_clocks_differ(unit: str) -> None:
    kind = pa.timestamp(unit, "UTC")
    times = {"timestamp": SENT_MS, "landed_at": [LANDED_MS] * 3}
    columns = {
        name: pa.array(values, pa.timestamp("ms", "UTC")).cast(kind)
        for name, values in times.items()
    }
    payload = {"key": pa.array([b"k", None, b""]), "value": pa.array([b"four", b"", None])}
    state = Progress(PLAN, 0, [], [])
    measure(state, pa.RecordBatch.from_pydict({**columns, **payload}), ACKNOWLEDGED_MS)
    (row,) = result_of(0, "w", [state], True).to_pylist()
    found = {
        which: [row[f"{which}_{name}_ms"] for name in LATENCY]
        for which in ("landing", "replication")
    }
    assert found["landing"] == [-1, pytest.approx(499.6667), 500, 950, 990, 1_000]
    assert found["replication"] == [999, pytest.approx(1_499.6667), 1_500, 1_950, 1_990, 2_000]
    assert row["byte_count"] == 5


def test_what_ended_in_a_shard_is_told_once() -> None:
    states = [Progress(PLAN, 0, [], []), Progress(PLAN, 0, [], [])]
    rows = result_of(0, "w", states, True, Ended(3, 1)).to_pylist()
    assert [(row["transactions"], row["aborts"]) for row in rows] == [(3, 1), (None, None)]


NUMBERS = st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=300)


@given(NUMBERS, st.integers(0, 300))
def test_percentiles_are_those_of_numpy(values: list[int], cut: int) -> None:
    parts = [np.array(part) for part in (values[:cut], values[cut:]) if part]
    found = _percentiles("landing", parts)
    p50, p95, p99 = np.percentile(values, [50, 95, 99]) / 1_000
    wanted = (min(values) / 1_000, np.mean(values) / 1_000, p50, p95, p99, max(values) / 1_000)
    for name, value in zip(LATENCY, wanted, strict=True):
        assert found[f"landing_{name}_ms"] == pytest.approx(value, abs=0.51 if name != "avg" else 1)
