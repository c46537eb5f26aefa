"""Configs of restored topics: as they were, and nothing that deletes what was just restored."""

import pytest

from mirrorlake.kafka.values import ConfigValue
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.resend.configs import Restored, plan_restored

NOW, HOUR = 1_800_000_000_000, 3_600_000
MADE = {key: ConfigValue("-1", "topic") for key in ("retention.ms", "retention.bytes")}


def planned(configs: dict[str, str], oldest_ms: int | None) -> tuple[dict[str, str | None], int]:
    """What is set, and how much is kept off on purpose."""
    found = plan_restored(
        {"t": TopicState(1, 1, configs)}, {"t": Restored("x.t", MADE, 1, oldest_ms)}, NOW
    )
    assert {change.target_topic for change in found.changes} <= {"x.t"}
    return {change.key: change.after for change in found.changes}, len(found.kept)


def test_what_was_set_is_set() -> None:
    configs = {
        "cleanup.policy": "compact",
        "leader.replication.throttled.replicas": "0:1",
        "retention.bytes": "-1",
    }
    assert planned({**configs, "retention.ms": str(HOUR)}, NOW - HOUR // 2) == (
        {"cleanup.policy": "compact", "retention.ms": str(HOUR)},
        0,
    )


@pytest.mark.parametrize(
    ("configs", "oldest_ms", "left"),
    [
        ({"retention.ms": str(HOUR)}, NOW - 2 * HOUR, 1),
        ({"retention.ms": "-1", "retention.bytes": "1000"}, NOW, 1),
        ({}, NOW, 1),  # its cluster's default, whatever that is
        ({"retention.ms": "-1"}, 0, 0),
        ({}, None, 0),
    ],
)
def test_nothing_is_deleted_by_it(
    configs: dict[str, str], oldest_ms: int | None, left: int
) -> None:
    assert planned(configs, oldest_ms) == ({}, left)


def test_a_topic_that_the_lake_does_not_know_is_told() -> None:
    found = plan_restored({}, {"t": Restored("t", MADE, 1, NOW)}, NOW)
    assert not found.changes and "t are not restored" in found.left[0]
