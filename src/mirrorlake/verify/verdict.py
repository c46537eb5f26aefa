"""A comparison's input and output: differences, what may differ and why, verdicts. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.offsets.spans import Extents

#: Kinds of differences.
MISSING, TWICE, CONTENT, ORDER = "missing_at_target", "twice_at_target", "content", "order"
FOREIGN, NOT_MAPPED, STAGE = "foreign_at_target", "not_mapped", "stage_differs"
TARGET_GONE = "target_gone"
#: Reasons for which records are excused (docs/trust.md says what each means).
TRIMMED, TARGET_TRIMMED, STAGE_TRIMMED = "source_trimmed", "target_trimmed", "stage_trimmed"
GIVEN_UP, PARKED, FORGOTTEN, ECHO = "given_up", "parked", "forgotten", "echo"
SUPERSEDED, OTHERS = "superseded", "others"
#: Counted as STAGE_TRIMMED: only deleted from the stage, so that the map has to have the record.
REMOVED = "removed"
ALTERED_TIMESTAMP = "altered_timestamp"
#: The verdict of a range without differences, and no record excused as TRIMMED or SUPERSEDED.
PROVEN = "proven"
#: Verdicts of ranges without differences.
WHOLE = (PROVEN, TRIMMED, SUPERSEDED)

_NONE = OffsetRanges()


@dataclass(frozen=True)
class Allowances:
    """What may differ, and why.

    Attributes:
        source_start: where the source's log begins now.
        source_compacts, target_compacts: the topic is compacted there, so records may be gone.
        target_start: where the target's log begins now.
        target_keeps_from: records with an older timestamp (ms) may have been deleted by the target
            topic's retention; None: it deletes none.
        target_keeps_deletions_ms: how long a compacted target topic keeps a tombstone.
        last_of_key: source offsets that compaction has to leave at the target; None: not looked up.
        left_out: source offsets by reason: GIVEN_UP, PARKED, FORGOTTEN, STAGE_TRIMMED, REMOVED.
        others: ranges of target offsets that others wrote, or that this flow was just writing:
        offsets in them that its map does not have are not compared.
        shared: target records that are not marked as coming from the source are another's.
        others_anywhere: any target offset that the map does not have may be another producer's.
    """

    source_start: int = 0
    source_compacts: bool = False
    target_start: int = 0
    target_compacts: bool = False
    target_keeps_from: int | None = None
    target_keeps_deletions_ms: int = 0
    last_of_key: frozenset[int] | None = None
    left_out: Mapping[str, OffsetRanges] = field(default_factory=dict)
    others: Extents = ()
    shared: bool = False
    others_anywhere: bool = False

    def reason(self, offset: int, *reasons: str) -> str | None:
        """The first of some reasons for which a source offset was left out."""
        return next(
            (reason for reason in reasons if offset in self.left_out.get(reason, _NONE)), None
        )


@dataclass(frozen=True)
class Difference:
    """`count` records from source offset `first` to `last`, inclusive. `target_offset` is where the
    first of them is, or should be, at the target. A foreign record has the source offset of the
    record behind which it lies."""

    kind: str
    first: int
    last: int
    count: int = 1
    target_offset: int | None = None
    detail: str = ""


@dataclass(frozen=True)
class Verdict:
    """A comparison's outcome: differences by source offset, counts of excused records by reason,
    and how many of these only the map has."""

    differences: tuple[Difference, ...]
    excused: Mapping[str, int]
    only_mapped: int = 0

    @property
    def word(self) -> str:
        """PROVEN; SUPERSEDED if the target has compacted away some records, and has all that it
        must have; TRIMMED if the stage equals the target but the source no longer has all of it, or
        neither of the two has a record that was mapped; or the kind of the first difference."""
        if self.differences:
            return self.differences[0].kind
        if self.excused.get(SUPERSEDED):
            return SUPERSEDED
        return TRIMMED if self.excused.get(TRIMMED) else PROVEN
