"""Translates positions between source and target. The law of translation itself is SQL.

`sql/queries/translate_forward.sql` and `translate_reverse.sql` hold the law over the view
`offset_translation`, for any number of positions in one statement.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from mirrorlake.errors import UnknownOffset
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.other_logs import source_generations
from mirrorlake.lake.reader import Frame, Reader, one_of
from mirrorlake.offsets.generations import SourceGenerations
from mirrorlake.offsets.positions import (
    PartitionGeneration,
    Reached,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)
from mirrorlake.offsets.ranges import NO_END

#: With more topics than this, all share one lower bound: Spark plans a long condition slowly.
_BOUNDED_TOPICS = 8
_ASKED = "topic STRING, partition INT, offset BIGINT"
_BOUNDS = "topic STRING, partition INT, bound BIGINT"
_GONE = "topic STRING, partition INT, offset BIGINT, generation INT, cut BIGINT"
_SAMPLES = (
    "topic STRING, partition INT, sampled_at TIMESTAMP, produced_end BIGINT, mapped_end BIGINT, "
    "target_topic STRING, target_generation INT, generation INT"
)
#: The newest sample of each partition; those of the future, by a wrong clock, come last.
_NEWEST = (
    "SELECT * FROM (SELECT samples.*, row_number() OVER (PARTITION BY topic, partition ORDER BY "
    "sampled_at < current_timestamp() + INTERVAL 5 MINUTES DESC, sampled_at DESC) AS nth FROM "
    "({positions}) AS samples WHERE flow = :flow AND source_end IS NOT NULL) WHERE nth = 1"
)


def translate(
    lake: Reader, flow: str, topic: str, partition: int, offset: int, reverse: bool = False
) -> Translated:
    """Translate a position: from the source to the target of a flow, or back.

    A position inside a gap goes to the next record; reading from the translated position never
    skips a record, and repeats none. While a target topic is gone, or was made again and no
    operator has decided how to go on, positions lead to its start. `topic` is the name on the side
    that the position is from. Raises UnknownOffset for a partition that was never seen.
    """
    asked = (topic, partition, offset)
    translated = translate_all(lake, flow, [asked], reverse).get(asked)
    if translated is None:
        reason = never_seen(flow, topic, partition, reverse)
        raise UnknownOffset(reason)
    return translated


def never_seen(flow: str, topic: str, partition: int, reverse: bool) -> str:
    """The message for a position that `translate_all` leaves out."""
    side = "target" if reverse else "source"
    return (
        f"flow {flow} has never seen partition {partition} of {side} topic {topic}; "
        f"name one topic, and no pattern, as it is at the {side}: `mirrorlake plan` lists them"
    )


def translate_all(
    lake: Reader, flow: str, asked: Iterable[TopicPartitionOffset], reverse: bool = False
) -> dict[TopicPartitionOffset, Translated]:
    """Translate many positions in one statement; those of partitions never seen are left out."""
    rows = sorted(set(asked))
    if not rows:
        return {}
    query, frames, topics = question(rows, reverse, lake.with_all_columns("positions"))
    answer = lake.query_rows(query, frames, flow=flow, **topics)
    return {key: translated for key, (translated, known) in _translations(answer).items() if known}


def question(
    rows: Sequence[TopicPartitionOffset], reverse: bool, positions: str
) -> tuple[str, Mapping[str, Frame | str], Mapping[str, object]]:
    """The query of `translate_all`: its name, its frames, and the topics' names as parameters.
    `positions` is the text of a query on that table. Pure."""
    condition, topics = one_of("target_topic" if reverse else "topic", {row[0] for row in rows})
    where = f"WHERE flow = :flow AND {condition}"
    frames: dict[str, Frame | str] = {
        "asked": Frame(_ASKED, rows),
        "runs": f"SELECT * FROM offset_translation {where}",
        "samples": f"SELECT * FROM ({positions}) AS samples {where}",
    }
    return "translate_reverse" if reverse else "translate_forward", frames, topics


def translate_living(
    lake: Reader, flow: str, asked: Iterable[TopicPartitionOffset], reverse: bool
) -> dict[TopicPartitionOffset, Translated]:
    """As `translate_all`, for moving a reader there: back at the source, a position in a generation
    that is gone becomes the start of what took its place, and `gone` is how many records of the old
    one were left to read."""
    translated = translate_all(lake, flow, asked, reverse)
    if not reverse or not translated:
        return translated
    known = source_generations(lake, flow)
    over = {
        key: (position, place)
        for key, position in translated.items()
        if (place := _gone_place(position, known)) is not None
    }
    unread = _unread(lake, flow, {key: place for key, (_, place) in over.items()}, known)
    moved = {
        key: replace(position, offset=known.living(place, position.offset), gone=unread.get(key, 0))
        for key, (position, place) in over.items()
    }
    return {**translated, **moved}


def _gone_place(translated: Translated, known: SourceGenerations) -> PartitionGeneration | None:
    """The generation of a position at the source, where it is not the newest; else None."""
    key = (translated.topic, translated.partition)
    is_over = translated.generation is not None and translated.generation < known.newest(key)
    return PartitionGeneration(*key, translated.generation or 0) if is_over else None


def _unread(
    lake: Reader,
    flow: str,
    asked: Mapping[TopicPartitionOffset, PartitionGeneration],
    known: SourceGenerations,
) -> dict[TopicPartitionOffset, int]:
    """How many records that the source has no more the map has at or behind target positions."""
    rows = [
        (*key, number, known.living(place._replace(generation=number), NO_END))
        for key, place in asked.items()
        for number in range(place.generation, known.newest(place.topic_partition))
    ]
    if not rows:
        return {}
    unread = lake.query_rows("unread_gone", {"gone": Frame(_GONE, rows)}, flow=flow)
    return {(row["topic"], row["partition"], row["offset"]): row["record_count"] for row in unread}


class Translator:
    """Translates positions of a running flow forward, and remembers where the map ended.

    So it reads of a partition only the map behind its last end or lowest position. For one thread.
    """

    def __init__(self, lake: Lake, flow: str) -> None:
        self._lake = lake
        self._flow = flow
        self._ends: dict[TopicAndPartition, int] | None = None

    def forget(self, topics: Collection[str]) -> None:
        """Forget topics that began a new generation, at the source or at the target."""
        if topics:
            known = self._ends or {}
            self._ends = {key: end for key, end in known.items() if key[0] not in topics}

    def translate(
        self,
        asked: Iterable[TopicPartitionOffset],
        reached: Mapping[TopicAndPartition, Reached] | None,
    ) -> dict[TopicPartitionOffset, Translated]:
        """Translate positions; `reached` is how far the flow is, None: by the newest samples.

        A partition that was never seen, of a topic that was, has its target offset from 0 on.
        """
        rows = sorted(set(asked))
        if not rows:
            return {}
        topics = {topic for topic, _, _ in rows}
        ends = self._known_ends()
        runs, bounds, names = self._near(rows, ends)
        frames: dict[str, Frame | str] = {
            "asked": Frame(_ASKED, rows),
            "runs": runs,
            "samples": _NEWEST if reached is None else _samples(reached, topics),
            "positions": self._lake.reader.with_all_columns("positions"),
            "bounds": Frame(_BOUNDS, bounds),
        }
        translated = _translations(
            self._lake.ask("translate_forward", frames, flow=self._flow, **names)
        )
        now = {(topic, at): one.end for (topic, at, _), (one, _) in translated.items()}
        if fewer := [key for key, end in now.items() if end < ends.get(key, 0)]:
            # Records that the target lost have left the map since: the rest lies in front.
            for key in fewer:
                del ends[key]
            return self.translate(rows, reached)
        ends.update(now)
        return {
            key: position
            for key, (position, known) in translated.items()
            if known or position.mapped
        }

    def _known_ends(self) -> dict[TopicAndPartition, int]:
        """Where each partition's map ends, as far as known; read at first, by a few columns.

        Of several ends (generations on either side) the lowest: which one lives is not known here.
        """
        if self._ends is None:
            self._ends = {}
            for row in self._lake.ask("mapped_ends", flow=self._flow):
                key = (row["topic"], row["partition"])
                end = row["source_position"]
                self._ends[key] = min(end, self._ends.get(key, end))
        return self._ends

    def _near(
        self, rows: Sequence[TopicPartitionOffset], ends: Mapping[TopicAndPartition, int]
    ) -> tuple[str, list[tuple[str, int, int]], dict[str, object]]:
        """The runs that can matter: each partition's newest ends at or behind the last seen end.

        Returns the query, the rows of its frame `bounds`, and its parameters: names of topics.
        """
        topics = {topic for topic, _, _ in rows}
        bounds = {key: end - 1 for key, end in ends.items() if key[0] in topics}
        for topic, partition, offset in rows:
            bounds[topic, partition] = min(offset, bounds.get((topic, partition), 0))
        lowest: dict[str, int] = {}
        for (topic, _), bound in bounds.items():
            lowest[topic] = min(lowest.get(topic, bound), bound)
        condition, names = one_of("runs.topic", lowest)
        if len(lowest) > _BOUNDED_TOPICS:
            skips = f"{condition} AND run_source_last >= {min(lowest.values())}"
        else:
            each = (
                f"(runs.topic = :{key} AND run_source_last >= {lowest[str(name)]})"
                for key, name in names.items()
            )
            skips = " OR ".join(each)
        query = (
            "SELECT runs.* FROM offset_translation AS runs LEFT JOIN {bounds} AS bounds"
            " ON bounds.topic = runs.topic AND bounds.partition = runs.partition"
            f" WHERE flow = :flow AND ({skips}) AND run_source_last >= coalesce(bound, 0)"
        )
        return query, [(*key, bound) for key, bound in bounds.items()], names


def _samples(reached: Mapping[TopicAndPartition, Reached], topics: Collection[str]) -> Frame:
    """How far a flow is now, as a frame of samples."""
    now = datetime.now(timezone.utc)
    mine = ((key, sample) for key, sample in reached.items() if key[0] in topics)
    return Frame(_SAMPLES, [(*key, now, *vars(sample).values()) for key, sample in mine])


def _translations(
    rows: Iterable[Mapping[str, Any]],
) -> dict[TopicPartitionOffset, tuple[Translated, bool]]:
    names = ("topic", "partition", "offset", "exact", "ahead", "mapped")
    return {
        (row["asked_topic"], row["partition"], row["asked_offset"]): (
            Translated(
                **{name: row[name] for name in names},
                end=row["mapped_end"],
                generation=row.get("generation"),
            ),
            row["known"],
        )
        for row in rows
    }
