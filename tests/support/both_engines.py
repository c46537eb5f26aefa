"""Every query that both engines run, with parameters and frames for each."""

import math
import re
from datetime import timedelta
from importlib.resources import files
from typing import Any

from mirrorlake.lake.reader import Frame
from tests.support.odd_lake import END, FLOW, TOPICS

#: What is no question, and what is asked of a catalog only, where Spark's `_metadata` says which
#: file a row is in.
NOT_OF_BOTH = re.compile(r"^\s*(MERGE|UPDATE|DELETE|INSERT)\b|\b_metadata\b", re.MULTILINE)
QUERIES = [
    (kind, item.name.removesuffix(".sql"))
    for kind in ("queries", "notebooks")
    for item in sorted((files("mirrorlake") / "sql" / kind).iterdir(), key=lambda item: item.name)
    if not NOT_OF_BOTH.search(item.read_text(encoding="utf-8"))
]


BEGAN, ENDED = (END - timedelta(hours=9)).isoformat(), END.isoformat()
MINUTE = (END - timedelta(minutes=1)).replace(second=0, microsecond=0)
ARGS: dict[str, object] = {
    "forget_id": "id0",
    "flow": FLOW,
    "topic": "orders",
    "partition": 0,
    "source_cluster": "east",
    "cluster": "east",
    "noted_too": False,
    "prefix": "east->",
    "kind": "acl",
    "since_ms": int((END - timedelta(minutes=5)).timestamp() * 1000),
    "since": BEGAN,
    "until": ENDED,
    "cutoff_ms": int((END - timedelta(minutes=40)).timestamp() * 1000),
    "released_ms": int((END - timedelta(minutes=20)).timestamp() * 1000),
    "minute": MINUTE.isoformat(),
    "at": BEGAN,
    "batch_id": 17,
    "offset": 22,
    "generation": 0,
    "target_topic": "east.orders",
    "mirror": "east.orders",
    "back": "west->east",
    "first": 3,
    "last": 30,
    "target_offset": 15,
    "target_generation": 0,
    "key": "6BC3A9",
    "gap_ms": 30_000,
    "first_gap_ms": 15_000,
    "until_ms": int((END - timedelta(seconds=90)).timestamp() * 1000),
    "gone": "gone",
    "deletions_ms": int(END.timestamp() * 1000),
    "target": "west",
    "first_ms": int((END - timedelta(seconds=2995)).timestamp() * 1000),
    "last_ms": int((END - timedelta(seconds=65)).timestamp() * 1000),
}
OF_RANGES = (
    "flow STRING, topic STRING, partition INT, generation INT, first BIGINT, last BIGINT, "
    "record_count BIGINT, target_topic STRING"
)
OF_NEEDED = "flow STRING, topic STRING, partition INT, generation INT, first BIGINT, below BIGINT"
OF_STAGED = "topic STRING, partition INT, generation INT, below BIGINT"
OF_CUTS = "source_cluster STRING, topic STRING, partition INT, generation INT, below BIGINT"
OF_WANTED = (
    "topic STRING, partition INT, generation INT, target_topic STRING, first BIGINT, last BIGINT"
)
OF_OFFSETS = "topic STRING, partition INT, offset BIGINT, since INT"
OF_PLACES = "topic STRING, partition INT, generation INT, first BIGINT"
OF_STRETCHES = "target_topic STRING, target_partition INT, first BIGINT, last BIGINT"
OF_GONE = "topic STRING, partition INT, offset BIGINT, generation INT, cut BIGINT"
ASKED = [
    (topic, partition, at)
    for topic in TOPICS
    for partition in range(4)
    for at in (0, 3, 9, 20, 35, 37, 59, 5000)
]
FRAMES: dict[str, Frame | str] = {
    "ranges": Frame(
        OF_RANGES,
        [
            (FLOW, topic, 0, 0, 0, last, 30, f"east.{topic}")
            for topic, last in zip(TOPICS, (25, 16), strict=True)
        ],
    ),
    "cuts": Frame(OF_CUTS, [("east", topic, 0, 0, 22) for topic in TOPICS]),
    "asked": Frame("topic STRING, partition INT, offset BIGINT", ASKED),
    "gone": Frame(
        OF_GONE,
        [
            (f"east.{topic}", 0, at, generation, 4)
            for topic in TOPICS
            for at in (0, 9)
            for generation in (0, 1)
        ],
    ),
    "wanted": Frame(OF_WANTED, [(topic, 0, 0, f"east.{topic}", 3, 20) for topic in TOPICS]),
    "offsets": Frame(
        OF_OFFSETS,
        [(topic, part, at, 0) for topic in TOPICS for part, at in ((0, 3), (1, 20), (2, 5))],
    ),
    "stretches": Frame(OF_STRETCHES, [(f"east.{topic}", 0, 0, 20) for topic in TOPICS]),
    "places": Frame(OF_PLACES, [(topic, part, 1, 20) for topic in TOPICS for part in (0, 1)]),
    "runs": "SELECT * FROM offset_translation WHERE flow = :flow",
    "matching": (
        "SELECT source_cluster, topic, partition, 0 AS generation, offset, topic AS path "
        "FROM records"
    ),
    "picked": (
        "SELECT topic, partition, 0 AS generation, offset, topic AS path, "
        "offset % 3 = 0 AS waits FROM records"
    ),
    "staged": Frame(OF_STAGED, [(topic, 0, 0, 20) for topic in TOPICS]),
    "still_needed": Frame(OF_NEEDED, [(FLOW, topic, 0, 0, 3, 9) for topic in TOPICS]),
    "lost": Frame(
        "topic STRING, partition INT, target_topic STRING, target_generation INT, "
        "target_offset BIGINT",
        [(topic, part, f"east.{topic}", 0, 15) for topic in TOPICS for part in (0, 1)],
    ),
    "compacted": Frame(
        "topic STRING, partition INT, generation INT, first BIGINT, last BIGINT, below BIGINT",
        [(topic, 0, 0, 3, 20, 40) for topic in TOPICS],
    ),
    "left_out": Frame(
        "topic STRING, partition INT, generation INT, first BIGINT, last BIGINT",
        [(TOPICS[0], 0, 0, 5, 7)],
    ),
    "samples": "SELECT * FROM positions WHERE flow = :flow",
}


def plain(value: Any) -> Any:
    """A value as both engines ought to have it: sums of floating point differ in their last
    digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def told(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in an order of their own; types are told by repr."""
    return sorted(repr({name: plain(value) for name, value in row.items()}) for row in rows)
