"""From when on a topic keeps its records, by its configs."""

import time

import pytest

from mirrorlake.kafka.retention import keeps_from
from mirrorlake.kafka.values import ConfigValue

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("configs", "kept_ms"),
    [
        ({"retention.ms": str(DAY_MS)}, DAY_MS),
        ({"cleanup.policy": "delete", "retention.ms": str(DAY_MS)}, DAY_MS),
        ({"cleanup.policy": "compact,delete", "retention.ms": str(DAY_MS)}, DAY_MS),
        ({"retention.ms": "-1", "retention.bytes": "1000"}, 0),
        ({"cleanup.policy": "compact", "retention.ms": str(DAY_MS)}, None),
        # empty, since Kafka 4.2: its records stay, whatever its retention says
        ({"cleanup.policy": "", "retention.ms": str(DAY_MS)}, None),
        ({"retention.ms": "-1", "retention.bytes": "-1"}, None),
        ({}, None),
    ],
)
def test_records_are_kept_by_what_deletes_them(
    configs: dict[str, str], kept_ms: int | None
) -> None:
    now = time.time() * 1_000
    kept_from = keeps_from({name: ConfigValue(value, "topic") for name, value in configs.items()})
    if kept_ms is None:
        assert kept_from is None
    else:
        assert kept_from is not None and abs(kept_from - (now - kept_ms)) < 60_000
