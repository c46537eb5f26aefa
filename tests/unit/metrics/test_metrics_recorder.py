"""What threads report is counted, and never fails them."""

from dataclasses import replace
from datetime import datetime, timezone

import pyarrow as pa
import pytest

from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.meter import Landed
from mirrorlake.metrics.facts import FlowInForce, Volume, waits
from mirrorlake.metrics.recorder import Recorder
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.produce.report import RESULT
from mirrorlake.run.samples import FlowLag
from mirrorlake.testing.memory_lake import MemoryLake

LATE = {
    f"{kind}_{name}_ms": 400
    for kind in ("landing", "replication")
    for name in ("min", "avg", "p50", "p95", "p99", "max")
}


def report(*rows: dict[str, object], way: str = "short") -> BatchReport:
    result = pa.Table.from_pylist([{**LATE, **row} for row in rows], schema=RESULT)
    count = sum(int(str(row["record_count"])) for row in rows)
    return BatchReport(1, 1, count, "files", True, way=way, result=result)  # type: ignore[arg-type]


def row(topic: str, count: int, **columns: object) -> dict[str, object]:
    return {
        "topic": topic,
        "partition": 0,
        "record_count": count,
        "byte_count": 10 * count,
        **columns,
    }


def sampled(end: int, lag: int) -> FlowLag:
    since = datetime.fromtimestamp(50, timezone.utc)
    columns = {
        "produced_end": end,
        "lag_records": lag,
        "lag_seconds": 1.5,
        "source_end": end + lag,
        "target_end": None,
        "transaction_since": since,
        "stalled_since": since if lag else None,
    }
    return FlowLag(lag, 1.5, {("orders", 0): columns})


def test_batches_add_up() -> None:
    recorder = Recorder(lambda: 1000.0)
    recorder.batch("f", report(row("orders", 3, transactions=2, aborts=1)))
    recorder.batch("f", report(row("orders", 4), row("heartbeats", 1), way="long"))
    facts = recorder.facts().flows["f"]
    assert facts.produced["orders", 0] == Volume(7, 70)
    assert facts.replication["orders"].count == 7
    assert (facts.transactions, facts.aborts) == (2, 1)
    assert facts.batches == {"short": 1, "long": 1}
    assert facts.heartbeat_at == pytest.approx(999.6)


def test_no_heartbeat_is_newer_than_its_arrival() -> None:
    """One of a clock that was a day ahead would have hidden for a day that none comes."""
    clock = [1000.0]
    recorder = Recorder(lambda: clock[0])
    recorder.batch("f", report(row("heartbeats", 1, replication_min_ms=-86_400_000)))
    assert recorder.facts().flows["f"].heartbeat_at == 1000.0
    clock[0] = 900.0  # ours was ahead, too
    recorder.batch("f", report(row("heartbeats", 1)))
    assert recorder.facts().flows["f"].heartbeat_at == 900.0


def test_commits_and_what_they_bring() -> None:
    recorder = Recorder()
    for seconds in (0.02, 0.3):
        recorder.committed("records", seconds)
    recorder.landed("east", [Landed("orders", 0, 5, 500), Landed("orders", 3, 7, 70)])
    recorder.landed("east", iter([Landed("orders", 0, 1, 10)]))
    facts = recorder.facts()
    assert (facts.commits["records"].count, facts.commits["records"].total) == (2, 0.32)
    assert facts.landed == {
        ("east", "orders", 0): Volume(6, 510),
        ("east", "orders", 3): Volume(7, 70),
    }


def test_what_is_handed_out_does_not_change() -> None:
    recorder = Recorder()
    recorder.batch("f", report(row("orders", 3)))
    before = recorder.facts()
    recorder.batch("f", report(row("orders", 4)))
    assert before.flows["f"].produced["orders", 0] == Volume(3, 30)


def test_a_sample_says_since_when_a_partition_stands_still() -> None:
    recorder = Recorder()
    recorder.sampled("f", sampled(5, 2))
    sample = recorder.facts().flows["f"].samples["orders", 0]
    assert (sample.stalled_since, sample.transaction_since) == (50.0, 50.0)
    recorder.sampled("f", sampled(5, 0))
    assert recorder.facts().flows["f"].samples["orders", 0].stalled_since is None


def test_a_partition_without_an_answer_keeps_its_sample_and_its_lag_goes_on() -> None:
    """Its series vanished, and the process was called ready."""
    clock = [1000.0]
    recorder = Recorder(lambda: clock[0])
    recorder.sampled("f", sampled(5, 2))
    away = FlowLag(0, 0.0, silent=frozenset({("orders", 0), ("orders", 1)}))
    for clock[0] in (1010.0, 1020.0):
        recorder.sampled("f", away)
    flow = recorder.facts().flows["f"]
    assert (flow.samples.keys(), flow.silent) == ({("orders", 0)}, away.silent)
    sample = flow.samples["orders", 0]
    assert (sample.lag_records, sample.lag_seconds) == (2, 21.5)
    recorder.sampled("f", FlowLag(0, 0.0))
    assert recorder.facts().flows["f"].samples == {}, "it is not selected any more"


def test_what_did_not_answer_is_no_sign_that_there_is_nothing_to_do() -> None:
    recorder = Recorder(lambda: 1000.0)

    def why() -> list[str]:
        return waits(replace(recorder.facts(), in_force=(FlowInForce("f"),)))

    recorder.sampled("f", FlowLag(0, 0.0, silent=frozenset({("orders", 0)})))
    (sentence,) = why()
    assert sentence.endswith("its source does not answer about 1 partitions")
    recorder.sampled("f", sampled(5, 0))
    assert why() == []
    recorder.batch("f", report(row("orders", 3)))
    recorder.sampled("f", FlowLag(0, 0.0, silent=frozenset({("orders", 0)})))
    assert why() == [], "it works"


def test_a_partition_without_a_leader_does_not_keep_a_flow_from_being_ready() -> None:
    """It has an incident of its own, and a pod that is never ready stops each rollout."""
    recorder = Recorder(lambda: 1000.0)

    def ready(lag: FlowLag) -> bool:
        recorder.sampled("f", lag)
        return not waits(replace(recorder.facts(), in_force=(FlowInForce("f"),)))

    away = frozenset({("orders", 1)})
    assert ready(replace(sampled(5, 0), silent=away))
    assert not ready(replace(sampled(5, 2), silent=away)), "what waits in the others"
    others = {("orders", 1): sampled(5, 0).rows["orders", 0]}
    assert ready(FlowLag(0, 0.0, others, silent=frozenset({("orders", 0)}))), "its own waits"
    assert not ready(FlowLag(0, 0.0, silent=frozenset({("orders", 0), *away}))), "all are away"


def test_a_report_that_cannot_be_counted_fails_nobody(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    recorder.batch("f", report({"topic": "orders", "record_count": 1}))  # without a partition
    recorder.sampled("f", FlowLag(1, 1.0, {("orders", 0): {}}))
    assert "does not count in the metrics" in caplog.text


def test_appends_to_a_lake_are_measured() -> None:
    recorder, lake = Recorder(), MemoryLake()
    rows = rows_of("clusters", [{"alias": "east", "cluster_id": "E"}])
    lake.append("clusters", rows)  # by nobody measured
    lake.meter = recorder
    lake.append("clusters", rows)
    lake.append("clusters", rows, "application", 1)
    assert recorder.facts().commits["clusters"].count == 2
