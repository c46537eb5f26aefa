"""docs/metrics.md: each statement runs and finds something, and every metric of MirrorMaker 2 is
named."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirrorlake.lake.lake import Lake
from tests.support.histories import FLOW, History
from tests.support.lake_rows import now_of

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
STATEMENTS = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
#: `MirrorSourceMetrics` and `MirrorCheckpointMetrics` of Kafka 4.1; the last three have -min, -avg
#: and -max.
OF_MIRRORMAKER = (
    "record-count",
    "byte-count",
    "record-rate",
    "byte-rate",
    "record-age-ms",
    "replication-latency-ms",
    "checkpoint-latency-ms",
)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    history = History(spark, tmp_path_factory.mktemp("metrics"))
    for partition in (0, 1):
        history.sample(-45, "orders", partition, 1000, 900, 4.5, target_end=905).batch(
            4, "orders", partition, 1, 900
        )
    place = {
        "flow": FLOW,
        "group_id": "billing",
        "topic": "orders",
        "partition": 0,
        "target_topic": "east.orders",
    }
    times = {"checkpointed_at": history.at(5), "read_at": history.at(6)}
    history.add("checkpoints", **place, source_position=5, target_position=5, **times)
    return history.write()


def test_every_metric_of_mirrormaker_is_on_the_page() -> None:
    assert [name for name in OF_MIRRORMAKER if f"`{name}`" not in PAGE] == []
    assert len(STATEMENTS) >= 10


@pytest.mark.parametrize(
    "statement", STATEMENTS, ids=[" ".join(text.split())[:60] for text in STATEMENTS]
)
def test_the_statement_answers(lake: Lake, statement: str) -> None:
    rows = now_of(lake).rows(statement)
    assert rows
    assert {name for name, value in rows[0].items() if value is None} <= {"heartbeat_age_seconds"}
