"""Which topics are paused is a pattern of the topology file in `objectives`: DuckDB answers by it
as Java and Python do, also where its own engine does not read it."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from mirrorlake.config.objectives import paused_pattern
from mirrorlake.lake.definitions import TABLES, rows_of
from mirrorlake.lake.duck import DuckLake
from mirrorlake.lake.path_tables import PathTables
from mirrorlake.naming.patterns import check_pattern

FLOW = "east->west"
TOPICS = ("audit", "orders", "orders.eu", "payments-2")
#: A pattern, and the topics that it pauses.
PATTERNS: dict[str, set[str]] = {
    r"ord.*": {"orders", "orders.eu"},
    r"(?!orders).*": {"audit", "payments-2"},
    r"(?=.*eu)ord.*": {"orders.eu"},
    r".*(?<!-2)": {"audit", "orders", "orders.eu"},
    r"\u0061udit": {"audit"},
    r"[a-z]{1,2000}": {"audit", "orders"},
}


def ago(seconds: float) -> datetime:
    """By the clock of now: alerts go by it, and tests may begin long after they are read."""
    return datetime.now(timezone.utc) - timedelta(seconds=seconds)


def sample(topic: str, age: float) -> dict[str, object]:
    return {
        "flow": FLOW,
        "topic": topic,
        "partition": 0,
        "sampled_at": ago(age),
        "produced_end": 1,
        "source_end": 9,
        "lag_records": 8,
        "lag_seconds": age,
    }


def objectives(paused: str | None) -> dict[str, object]:
    thresholds = {"lag_seconds": 86400, "latency_p99_ms": 5000, "stuck_seconds": 600}
    return {
        "flow": FLOW,
        **thresholds,
        "enabled": True,
        "paused": paused,
        "heartbeats": False,
        "gaps": False,
        "mode": "continuous",
        "since": ago(3600),
    }


@pytest.fixture
def tables(tmp_path: Path) -> PathTables:
    made = PathTables(tmp_path)
    for table in TABLES:
        made.create(table)
    samples = [sample(topic, age) for topic in TOPICS for age in (1800, 1)]
    made.append("positions", rows_of("positions", samples))
    return made


def stuck(lake: DuckLake) -> set[str]:
    lake.refresh()
    return {row["topic"] for row in lake.table_rows("alerts") if row["flow"] == FLOW}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_that_java_and_python_read_pauses_the_same_topics(
    tmp_path: Path, tables: PathTables, pattern: str
) -> None:
    assert check_pattern(pattern) is None
    noted = objectives(paused_pattern([pattern, "no-topic"]))
    tables.append("objectives", rows_of("objectives", [noted]))
    lake = DuckLake(tmp_path)
    assert stuck(lake) == {*TOPICS} - PATTERNS[pattern]
    standing = {
        topic: lake.query_rows("trace_standing", flow=FLOW, topic=topic)[0]["is_paused"]
        for topic in TOPICS
    }
    assert {topic for topic, is_paused in standing.items() if is_paused} == PATTERNS[pattern]


def test_a_pattern_that_is_noted_while_a_lake_is_open(tmp_path: Path, tables: PathTables) -> None:
    tables.append("objectives", rows_of("objectives", [objectives(None)]))
    lake = DuckLake(tmp_path)
    assert stuck(lake) == {*TOPICS}
    other = {**objectives(paused_pattern(["(?!orders).*"])), "flow": "east->north"}
    tables.append("objectives", rows_of("objectives", [other]))
    assert stuck(lake) == {*TOPICS}
