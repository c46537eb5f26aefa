"""Moves a Structured Streaming query to the other cluster: reads its checkpoint, and translates its
positions.

Spark keeps the positions of a Kafka source in the query's own checkpoint and not in a group, so no
replicator moves them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.errors import InputError
from mirrorlake.groups.route_sides import translate_along
from mirrorlake.groups.shared_topics import Direction
from mirrorlake.lake.other_logs import OtherLogs, other_logs
from mirrorlake.lake.reader import Reader
from mirrorlake.lake.translate import never_seen
from mirrorlake.offsets.positions import TopicPartitionOffset, Translated
from mirrorlake.spark.query_files import (
    EARLIEST,
    LATEST,
    Offsets,
    QueryPosition,
    committed_batch,
    read_position,
)


@dataclass(frozen=True)
class InexactPosition:
    """A partition whose position could not be translated, or only to the highest safe position, and
    why."""

    source: int
    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True)
class TranslatedQuery:
    """Positions on the other cluster, by the number of the query's source, and problems with
    some."""

    positions: dict[int, Offsets]
    problems: list[InexactPosition]


def read_checkpoint(directory: Path) -> QueryPosition:
    """Where the query of a checkpoint continues; only reads. Raises InputError for a directory that
    is not a checkpoint, or of an unknown form."""
    if not (directory / "offsets").is_dir():
        raise InputError(
            f"{directory} is not a checkpoint of a Structured Streaming query: it has no folder "
            "`offsets`; give the directory that the query has as its checkpointLocation"
        )
    try:
        batch = committed_batch(_batches(directory / "offsets"), _batches(directory / "commits"))
        offsets = None if batch is None else _text(directory / "offsets" / str(batch))
        return read_position(batch, offsets, _began(directory / "sources"))
    except (InputError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"checkpoint {directory} cannot be translated: {reason}") from error


def translate_query(
    lake: Reader,
    topology: Topology,
    flow: ResolvedFlow,
    query: QueryPosition,
    reverse: bool = False,
) -> TranslatedQuery:
    """Translate a query's positions from the source to the target of a flow, or back with
    `reverse`, like those of groups: in a topic shared with the opposite flow, by both flows'
    records.

    EARLIEST and LATEST mean the same on the other cluster. A position that is not replicated yet
    goes to the highest safe one, and is reported as a problem, like one that was never seen.
    """
    asked = {
        (*key, offset) for positions in query.sources.values() for key, offset in positions.items()
    }
    way = Direction(flow, reverse)
    offsets = [position for position in asked if position[2] not in (EARLIEST, LATEST)]
    known = translate_along(lake, topology, way, offsets)
    known.update(
        _marks(flow, [position for position in asked if position[2] in (EARLIEST, LATEST)], reverse)
    )
    others = other_logs(lake, flow.name)
    translated = TranslatedQuery({}, [])
    for number, positions in query.sources.items():
        there = translated.positions.setdefault(number, {})
        for (topic, partition), offset in sorted(positions.items()):
            position = (topic, partition, offset)
            translation = known.get(position)
            if translation is not None:
                there[translation.topic, partition] = translation.offset
            reason = _problem_of(flow, position, translation, reverse=reverse, others=others)
            if reason is not None:
                translated.problems.append(InexactPosition(number, *position, reason))
    return translated


def _marks(
    flow: ResolvedFlow, asked: Sequence[TopicPartitionOffset], reverse: bool
) -> dict[TopicPartitionOffset, Translated]:
    """Translate EARLIEST and LATEST, which need only the topic's name there; topics that are not
    mirrors are left out."""
    marks = {}
    for topic, partition, mark in asked:
        name = flow.naming.upstream_topic(topic) if reverse else flow.target_topic(topic)
        if name is not None:
            marks[topic, partition, mark] = Translated(name, partition, mark, True)
    return marks


def _problem_of(
    flow: ResolvedFlow,
    position: TopicPartitionOffset,
    translation: Translated | None,
    *,
    reverse: bool,
    others: OtherLogs,
) -> str | None:
    """What is wrong with a translated position; `others` are logs of the source about which no
    operator has decided."""
    topic, partition, offset = position
    named = f"position {offset} of partition {partition} of topic {topic}"
    if translation is None:
        return never_seen(flow.name, topic, partition, reverse)
    if offset in (EARLIEST, LATEST):
        return None
    at_source = (translation.topic, partition, translation.offset) if reverse else position
    if (why := others.why(at_source)) is not None:
        return f"{named} is translated by what was mirrored of another log: {why}; then ask again"
    if translation.exact:
        return (
            f"of what {named} has in front of it, up to {translation.gone:,} records are not there"
            if translation.gone
            else None
        )
    return (
        f"{named} is beyond what flow {flow.name} has mirrored; {translation.offset} is the "
        "highest safe one, from which records come again: run the flow, then ask again"
    )


def _batches(folder: Path) -> list[int]:
    """Numbers of the batches that have a file; other files there are temporary, or checksums."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return [int(name) for name in names if name.isdecimal()]


def _began(folder: Path) -> dict[int, str]:
    """Where sources began, by number, if they have noted it."""
    places = [path for path in folder.iterdir() if path.name.isdecimal()] if folder.is_dir() else []
    return {int(path.name): _text(path / "0") for path in places if (path / "0").is_file()}


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")
