"""Facts of one record's life."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from mirrorlake.trace.facts import Facts, FlowRun, TracedRecord

NOW = datetime(2026, 3, 1, 12)
PLACE = TracedRecord("east->west", "orders", 0, 42)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


RECORD = {
    "generation": 0,
    "written_at": ago(100),
    "timestamp_type": 0,
    "landed_at": ago(99.39),
    "batch_id": 7,
    "key_bytes": 5,
    "value_bytes": 1200,
    "is_echo": False,
}
MAPPED = {
    "target_topic": "east.orders",
    "target_partition": 0,
    "target_generation": 0,
    "target_offset": 52,
    "produced_at": ago(99),
    "batch_id": 9,
    "first_batch_id": None,
    "source_first": 40,
    "source_last": 49,
    "record_count": 10,
    "lives": True,
}
SAMPLE = {
    "sampled_at": ago(5),
    "source_start": 0,
    "source_end": 60,
    "source_high_watermark": 60,
    "transaction_since": None,
    "staged_end": 60,
    "produced_end": 60,
    "lag_records": 0,
    "target_topic": "east.orders",
}
RUNS = FlowRun(None, "continuous", ago(5))
DELIVERED = Facts(
    PLACE,
    NOW,
    RECORD,
    MAPPED,
    {"record_count": 1200, "of_partition": 400},
    {"record_count": 30, "of_partition": 10, "way": "short"},
    newest=SAMPLE,
    flow_state=RUNS,
)
STAGED = replace(DELIVERED, mapped=None, produced=None)
MISSING = replace(
    STAGED, record=None, batch=None, around={"before": 41, "behind": 43, "removed_at": None}
)


def incident(kind: str = "target_refused", **more: object) -> dict[str, Any]:
    place = {
        "flow": "east->west",
        "topic": "orders",
        "partition": 0,
        "first_offset": 42,
        "last_offset": 42,
    }
    return {
        "kind": kind,
        "at": ago(50),
        "detail": "too large",
        "resolved_at": None,
        "resolution": None,
        "is_of_mirror": True,
        **place,
        **more,
    }
