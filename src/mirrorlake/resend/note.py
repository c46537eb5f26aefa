"""A resend as `changes` has it before its first record: another call continues by that. Pure.

A resend is produced like a flow, under a name that no flow of a topology file can have:
`replay:<id>:east->west`. Behind the arrow is its target, as with flows, so queries about a target
find it; in front is no cluster, so no query takes it for a flow that mirrors one.
"""

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Literal

from mirrorlake.errors import LakeError
from mirrorlake.lake.changes import Change
from mirrorlake.offsets.partition_ranges import StagedRange

Kind = Literal["replay", "restore"]
#: The place of one record: partition, generation, offset.
Picked = tuple[int, int, int]


@dataclass(frozen=True)
class ResentTopic:
    """What is sent of one source topic, and to which target topic.

    `ranges` are the offsets (inclusive) within which the records lie, one range for each generation
    of a partition; their counts are of sent records. `began` are the log ends of the target's
    partitions before the first record. `picked` are single records, if few and nothing else
    identifies them. `topic_id` is Kafka's id of the target topic at the beginning; empty if not
    reported. `unproven`: a transaction of the source may be there in part (`cut.Moment`).
    """

    topic: str
    target_topic: str
    ranges: tuple[StagedRange, ...]
    began: tuple[int, ...] = ()
    picked: tuple[Picked, ...] = ()
    topic_id: str = ""
    unproven: bool = False

    @property
    def records(self) -> int:
        """How many records are sent."""
        return sum(staged_range.record_count for staged_range in self.ranges)


@dataclass(frozen=True)
class Resend:
    """One resend: the request, the cluster of its stage, and the cluster it writes to, by alias and
    by the cluster's own id.

    `time_zone` is that of the session in which the predicate's texts were read as times.
    """

    kind: Kind
    id: str
    source: str
    target: str
    target_id: str
    request: Mapping[str, Any]
    parts: tuple[ResentTopic, ...]
    time_zone: str = "UTC"

    @property
    def name(self) -> str:
        """Its name in place of a flow's: in the map, in `changes`, in its group at the target."""
        return f"{self.kind}:{self.id}:{self.source}->{self.target}"

    @property
    def records(self) -> int:
        """How many records are sent."""
        return sum(part.records for part in self.parts)

    @property
    def ranges(self) -> list[StagedRange]:
        """The ranges of all parts."""
        return [staged_range for part in self.parts for staged_range in part.ranges]

    @property
    def names(self) -> dict[str, str]:
        """The target topics by source topic."""
        return {part.topic: part.target_topic for part in self.parts}

    def answers(self, source: str, target: str, request: Mapping[str, Any]) -> bool:
        """Whether it has this request, between these clusters."""
        return (self.source, self.target, dict(self.request)) == (source, target, dict(request))

    def began(self) -> list[Change]:
        """The rows of `changes` that note all of it, one for each part."""
        common = {"request": dict(self.request), "target_id": self.target_id}
        common["time_zone"] = self.time_zone
        notes = [json.dumps({**common, **_part_document(part)}) for part in self.parts]
        return [
            Change(self.kind, part.target_topic, after=note, outcome="begun")
            for part, note in zip(self.parts, notes, strict=True)
        ]

    def ended(self, records: Mapping[str, int]) -> list[Change]:
        """The rows of `changes` that note its end; `records` are counts by target topic."""
        names = [part.target_topic for part in self.parts]
        return [Change(self.kind, name, after=f"records={records.get(name, 0)}") for name in names]

    def given_up(self) -> list[Change]:
        """The rows of `changes` that note that it is not continued."""
        return [Change(self.kind, part.target_topic, outcome="skipped") for part in self.parts]


def new_id(now: datetime) -> str:
    """A unique id that begins with the day."""
    return f"{now:%Y%m%d}-{uuid.uuid4().hex[:8]}"


def is_resend(flow: str) -> bool:
    """Whether a flow's name is that of a resend: aliases of clusters contain no colon."""
    return ":" in flow


def _part_document(part: ResentTopic) -> dict[str, Any]:
    ranges = [list(staged_range[2:]) for staged_range in part.ranges]  # from `partition` on
    document = {"topic": part.topic, "ranges": ranges, "began": list(part.began)}
    picked = {"picked": [list(place) for place in part.picked]} if part.picked else {}
    topic_id = {"topic_id": part.topic_id} if part.topic_id else {}
    unproven = {"unproven": True} if part.unproven else {}
    return {**document, **picked, **topic_id, **unproven}


def read_notes(rows: Iterable[Mapping[str, Any]]) -> list[Resend]:
    """Resends by `flow`, `resource` and `after` of `changes`. Raises LakeError."""
    parts: dict[str, list[tuple[ResentTopic, Mapping[str, Any]]]] = defaultdict(list)
    for row in rows:
        try:
            note = json.loads(row["after"])
            source = row["flow"].split(":", 2)[2].partition("->")[0]
            ranges = tuple(StagedRange(source, note["topic"], *values) for values in note["ranges"])
            picked = tuple(tuple(place) for place in note.get("picked", ()))
            part = ResentTopic(
                note["topic"],
                row["resource"],
                ranges,
                began=tuple(note["began"]),
                picked=picked,
                topic_id=note.get("topic_id", ""),
                unproven=note.get("unproven", False),  # earlier versions did not note it
            )
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise LakeError(
                f"what `changes` says of {row['flow']} cannot be read ({error}); a newer "
                "mirrorlake may have written it"
            ) from error
        parts[row["flow"]].append((part, note))
    return [_resend(name, noted) for name, noted in parts.items()]


def _resend(name: str, parts: Sequence[tuple[ResentTopic, Mapping[str, Any]]]) -> Resend:
    kind, number, ends = name.split(":", 2)
    source, _, target = ends.partition("->")
    note = parts[0][1]
    return Resend(
        *(kind, number, source, target),  # type: ignore[arg-type]
        note["target_id"],
        note["request"],
        tuple(part for part, _ in parts),
        note["time_zone"],
    )


def first_of(
    ranges: Iterable[StagedRange], max_records: int
) -> tuple[list[StagedRange], StagedRange | None]:
    """The ranges that hold the first `max_records`, by partition, generation and offset.

    The second result is the last range, if only a part of it belongs there: its count says how many
    records; the offset of the last of these has to be looked up.
    """
    kept: list[StagedRange] = []
    left = max_records
    for staged_range in sorted(ranges, key=attrgetter("partition", "generation")):
        if staged_range.record_count > left:
            return kept, staged_range._replace(record_count=left) if left else None
        kept.append(staged_range)
        left -= staged_range.record_count
    return kept, None


def with_began(
    resend: Resend, ends: Mapping[str, tuple[int, ...]], ids: Mapping[str, str]
) -> Resend:
    """The resend with the log ends of target topics, and their ids where known."""
    parts = [
        replace(part, began=ends[part.target_topic], topic_id=ids.get(part.target_topic, ""))
        for part in resend.parts
    ]
    return replace(resend, parts=tuple(parts))
