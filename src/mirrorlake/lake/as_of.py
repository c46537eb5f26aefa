"""What the stage held of a cluster at a time: partitions' ends, no transaction cut in two."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mirrorlake.lake.reader import Reader
from mirrorlake.offsets.as_of import PATIENCE_MS, LandedPart, cut_as_of, read_ends
from mirrorlake.offsets.positions import TopicAndPartition

#: How far around a time batches are looked at one by one, ms: more than a cut may lie back.
_AROUND_MS = 6 * PATIENCE_MS


@dataclass(frozen=True)
class StagedEnd:
    """Where a partition ends as of a time: its generation then, and an offset, exclusive.
    `newest_ms` is about the newest time of its records below that (None: it has none). If not
    `whole`, a transaction may have records on both sides (`offsets.as_of.Cuts.unproven`)."""

    generation: int
    end: int
    newest_ms: int | None
    whole: bool


def staged_as_of(reader: Reader, source: str, until_ms: int) -> dict[TopicAndPartition, StagedEnd]:
    """Where the partitions of a source cluster end as of a time, ms: behind what was landed by
    then, and what was landed later with a timestamp up to it. A partition that had nothing by then
    ends at its first record.

    A transaction of the source has all of its records below the ends, or none, unless an end is not
    `whole` (offsets/as_of.py says how). So the ends may be earlier; `newest_ms` shows it.
    """
    (row,) = reader.query_rows("as_of_horizon", source_cluster=source, until_ms=until_ms)
    first = until_ms if row["noted"] is None else min(until_ms, row["noted"])
    window: dict[str, Any] = {
        "source_cluster": source,
        "first_ms": max(0, first - _AROUND_MS),
        "last_ms": max(until_ms, row["horizon"] or 0) + _AROUND_MS,
    }
    generations = _generations_of(reader.query_rows("as_of_parts", until_ms=until_ms, **window))
    noted = {
        row["batch_id"]: read_ends(row["open_ends"])
        for row in reader.query_rows("as_of_batches", **window)
    }
    cuts = cut_as_of(
        {key: [part for part, _ in staged] for key, (_, staged) in generations.items()}, noted
    )
    return {
        key: StagedEnd(
            generations[key][0], end, _newest(generations[key][1], end), key not in cuts.unproven
        )
        for key, end in cuts.ends.items()
    }


#: What batches hold of one partition, each with its newest time.
_Parts = list[tuple[LandedPart, int | None]]


def _generations_of(
    rows: Iterable[Mapping[str, Any]],
) -> dict[TopicAndPartition, tuple[int, _Parts]]:
    """The newest generation of each partition that has something by the time, or its first one, and
    what batches hold of it."""
    by_partition: dict[TopicAndPartition, dict[int, _Parts]] = {}
    for row in rows:
        part = LandedPart(
            row["batch"],
            row["first"],
            row["last"],
            row["record_count"],
            end=row["batch_end"],
            late_first=row["late_first"],
        )
        generations = by_partition.setdefault((row["topic"], row["partition"]), {})
        generations.setdefault(row["generation"], []).append((part, row["newest_ms"]))
    begun = {
        key: max(
            (
                number
                for number, parts in generations.items()
                if any(newest is not None for _, newest in parts)
            ),
            default=min(generations),
        )
        for key, generations in by_partition.items()
    }
    return {key: (number, by_partition[key][number]) for key, number in begun.items()}


def _newest(parts: _Parts, end: int) -> int | None:
    return max(
        (newest for part, newest in parts if part.first < end and newest is not None), default=None
    )
