"""What the lake knows of a source cluster's topics: their lives, how far they were landed, what operators decided."""

from collections.abc import Mapping
from datetime import datetime, timezone

import pyarrow as pa

from mirrorlake.core.survey import Decision, Key, Life
from mirrorlake.lake.lake import Lake, arrow_table

_GENERATIONS = pa.schema(
    [
        ("source_cluster", pa.string()),
        ("topic", pa.string()),
        ("generation", pa.int32()),
        ("topic_id", pa.string()),
        ("started_at", pa.timestamp("us", tz="UTC")),
    ]
)


def lives_of(lake: Lake, alias: str) -> dict[str, Life]:
    """The newest life of every topic of a cluster."""
    rows = lake.query("generations_of", source_cluster=alias).collect()
    return {row["topic"]: Life(row["generation"], row["topic_id"]) for row in rows}


def begin_lives(lake: Lake, alias: str, lives: Mapping[str, Life]) -> None:
    """Note lives that are seen first, or that an operator has let begin."""
    now = datetime.now(timezone.utc)
    rows = [{"source_cluster": alias, "topic": topic, "started_at": now, **vars(life)} for topic, life in lives.items()]
    lake.append("generations", arrow_table(rows, _GENERATIONS))


def decisions_of(lake: Lake, alias: str) -> list[Decision]:
    """What is known of losses at a cluster, and what was decided."""
    rows = lake.query("source_decisions", source_cluster=alias, prefix=f"{alias}->").collect()
    return [
        Decision(row["topic"], row["partition"], row["kind"], row["last_offset"], row["open"], row["resolution"])
        for row in rows
    ]


def landed_ends(lake: Lake, alias: str, lives: Mapping[str, Life]) -> dict[Key, int]:
    """Behind the newest record of each partition, in the newest life of its topic.

    Reads the coordinates of the whole stage: for a lost checkpoint only.
    """
    ends: dict[Key, int] = {}
    for row in lake.query("staged_ends", source_cluster=alias).collect():
        life = lives.get(row["topic"], Life(0, ""))
        if row["generation"] == life.generation:
            ends[row["topic"], row["partition"]] = row["next_offset"]
    return ends


def passed_ends(lake: Lake, alias: str) -> dict[Key, int]:
    """How far landing was seen to have come in first lives, by samples, which know of transaction markers too."""
    rows = lake.query("covered_ends", prefix=f"{alias}->").collect()
    return {(row["topic"], row["partition"]): row["covered"] for row in rows if row["covered"] is not None}
