"""Translation of positions between source and target: the library's door to the one law, which is SQL.

`sql/queries/translate_forward.sql` and `translate_reverse.sql` hold the law over the view `offset_translation`, for any
number of positions in one statement.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mirrorlake.errors import UnknownOffset
from mirrorlake.lake.definitions import definition
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.reader import Frame, Reader
from mirrorlake.offsets.positions import Reached, TopicAndPartition, Translated

if TYPE_CHECKING:  # Spark is imported by what is a flow's own, and not by answers
    from pyspark.sql import DataFrame

#: (topic, partition, position), the topic as on the side that the position is from.
Asked = tuple[str, int, int]

#: With more topics than this, one lower bound is used for all: Spark plans a long condition slowly.
_BOUNDED_TOPICS = 8
_ASKED = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
_BOUNDS = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("bound", pa.int64())])
_SAMPLES = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("sampled_at", pa.timestamp("us", tz="UTC")),
        ("produced_end", pa.int64()),
        ("mapped_end", pa.int64()),
        ("target_topic", pa.string()),
        ("target_generation", pa.int32()),
    ]
)


@dataclass(frozen=True)
class Translation:
    """A position on the other cluster. Not `exact` means: not replicated yet, and this is the highest safe position.

    While a target topic is gone, or was made again and nobody has decided how to go on, that is its start.
    """

    topic: str
    partition: int
    offset: int
    exact: bool


def translate(lake: Reader, flow: str, topic: str, partition: int, offset: int, reverse: bool = False) -> Translation:
    """Translate a position: from the source to the target of a flow, or back with `reverse`.

    `topic` is named as on the side that the position is from. A position inside a gap goes to the next record; reading
    from the translated position never skips a record, and repeats none. Raises UnknownOffset for what was never seen.
    """
    asked = (topic, partition, offset)
    found = translate_all(lake, flow, [asked], reverse).get(asked)
    if found is None:
        said = never_seen(flow, topic, partition, reverse)
        raise UnknownOffset(said)
    return Translation(found.topic, found.partition, found.offset, found.exact)


def never_seen(flow: str, topic: str, partition: int, reverse: bool) -> str:
    """What is said of a position that `translate_all` leaves out."""
    side = "target" if reverse else "source"
    return (
        f"flow {flow} has never seen partition {partition} of {side} topic {topic}; "
        "look at `mirrorlake status` for what it mirrors"
    )


def translate_all(lake: Reader, flow: str, asked: Iterable[Asked], reverse: bool = False) -> dict[Asked, Translated]:
    """Translate many positions in one statement; what was never seen is left out."""
    rows = sorted(set(asked))
    if not rows:
        return {}
    column = "target_topic" if reverse else "topic"
    topics = {f"topic{number}": name for number, name in enumerate(sorted({topic for topic, _, _ in rows}))}
    one_of = ", ".join(f":{name}" for name in topics)
    where = f"WHERE flow = :flow AND {column} IN ({one_of})"
    frames: dict[str, Frame | str] = {
        "asked": Frame((("topic", "STRING"), ("partition", "INT"), ("offset", "BIGINT")), rows),
        "runs": f"SELECT * FROM offset_translation {where}",
        "samples": f"SELECT * FROM ({lake.whole('positions')}) AS samples {where}",
    }
    found = lake.query_rows("translate_reverse" if reverse else "translate_forward", frames, flow=flow, **topics)
    return {key: item for key, (item, known) in _translations(found).items() if known}


class Translator:
    """Translates positions of one running flow forward, again and again; remembers where the map ended.

    So it reads only what of the map lies behind its last ends, or behind the lowest position asked for, of each
    partition. For one thread.
    """

    def __init__(self, lake: Lake, flow: str) -> None:
        self._lake = lake
        self._flow = flow
        self._ends: dict[TopicAndPartition, int] | None = None

    def forget(self, topic: str) -> None:
        """Forget a topic that began a new generation, or whose target topic began a new generation."""
        self._ends = {key: end for key, end in (self._ends or {}).items() if key[0] != topic}

    def translate(
        self, asked: Iterable[Asked], reached: Mapping[TopicAndPartition, Reached] | None
    ) -> dict[Asked, Translated]:
        """Translate positions; `reached` is how far the flow is, else the newest sample of each partition says so.

        A partition that was never seen, of a topic that was, has its target offset from 0 on.
        """
        from pyspark.sql import functions as F

        rows = sorted(set(asked))
        if not rows:
            return {}
        topics = sorted({topic for topic, _, _ in rows})
        ends = self._known_ends()
        runs = self._near(rows, ends)
        if reached is None:
            samples = _newest(
                _samples_of(self._lake).where((F.col("flow") == self._flow) & F.col("topic").isin(topics))
            )
        else:
            samples = self._samples({key: item for key, item in reached.items() if key[0] in set(topics)})
        found = _run(self._lake, self._flow, rows, runs, samples)
        for (topic, partition, _), (item, _) in found.items():
            ends[topic, partition] = item.end
        return {key: item for key, (item, known) in found.items() if known or item.mapped}

    def _samples(self, reached: Mapping[TopicAndPartition, Reached]) -> "DataFrame":
        now = datetime.now(timezone.utc)
        rows = [
            {"topic": topic, "partition": partition, "sampled_at": now, **vars(item)}
            for (topic, partition), item in reached.items()
        ]
        return self._lake.spark.createDataFrame(pa.Table.from_pylist(rows, _SAMPLES))

    def _known_ends(self) -> dict[TopicAndPartition, int]:
        """Where the map of each partition ends, as far as is known; asked of the lake at first, by a few columns.

        Of several ends (generations of a topic here or there) the lowest: the living ones are not known here."""
        if self._ends is None:
            self._ends = {}
            for row in self._lake.query("mapped_ends", flow=self._flow).collect():
                key = (row["topic"], row["partition"])
                self._ends[key] = min(row["source_position"], self._ends.get(key, row["source_position"]))
        return self._ends

    def _near(self, rows: Sequence[Asked], ends: Mapping[TopicAndPartition, int]) -> "DataFrame":
        """The runs that can matter: the newest run of each partition ends at or behind the end that was seen last."""
        from pyspark.sql import functions as F

        topics = {topic for topic, _, _ in rows}
        bounds = {key: end - 1 for key, end in ends.items() if key[0] in topics}
        for topic, partition, offset in rows:
            bounds[topic, partition] = min(offset, bounds.get((topic, partition), 0))
        lowest: dict[str, int] = {}
        for (topic, _), bound in bounds.items():
            lowest[topic] = min(lowest.get(topic, bound), bound)
        named, last = F.col("topic"), F.col("run_source_last")
        if len(lowest) > _BOUNDED_TOPICS:
            skips = named.isin(sorted(lowest)) & (last >= min(lowest.values()))
        else:
            skips = reduce(or_, ((named == name) & (last >= bound) for name, bound in lowest.items()))
        runs = self._lake.table("offset_translation").where((F.col("flow") == self._flow) & skips)
        places = [dict(zip(_BOUNDS.names, (*key, bound), strict=True)) for key, bound in bounds.items()]
        frame = F.broadcast(self._lake.spark.createDataFrame(pa.Table.from_pylist(places, _BOUNDS)))
        return runs.join(frame, ["topic", "partition"], "left").where(last >= F.coalesce("bound", F.lit(0)))


def _newest(samples: "DataFrame") -> "DataFrame":
    """The newest sample of each partition."""
    from pyspark.sql import functions as F

    every = F.struct(*samples.columns)
    return samples.groupBy("topic", "partition").agg(F.max_by(every, "sampled_at").alias("newest")).select("newest.*")


def _samples_of(lake: Lake) -> "DataFrame":
    """`positions`, with the columns that a catalog's table lacks until a writer of this version has opened it."""
    from pyspark.sql import functions as F

    samples = lake.table("positions")
    known = set(samples.columns)
    missing = {item.name: item.spark_type for item in definition("positions").columns if item.name not in known}
    # Spark Connect takes no empty set of columns.
    return samples.withColumns({name: F.lit(None).cast(kind) for name, kind in missing.items()}) if missing else samples


def _run(
    lake: Lake, flow: str, rows: Sequence[Asked], runs: "DataFrame", samples: "DataFrame"
) -> dict[Asked, tuple[Translated, bool]]:
    """What the law says of each source position, and whether its partition is known."""
    table = pa.Table.from_pylist([dict(zip(_ASKED.names, row, strict=True)) for row in rows], _ASKED)
    frames = {"asked": lake.spark.createDataFrame(table), "runs": runs, "samples": samples}
    return _translations(row.asDict() for row in lake.query_over("translate_forward", frames, flow=flow).collect())


def _translations(rows: Iterable[Mapping[str, Any]]) -> dict[Asked, tuple[Translated, bool]]:
    names = ("topic", "partition", "offset", "exact", "ahead", "mapped", "mapped_end")
    return {
        (row["asked_topic"], row["partition"], row["asked_offset"]): (
            Translated(*(row[name] for name in names)),
            row["known"],
        )
        for row in rows
    }
