"""What a comparison is given, and what it says: kinds of differences, what may differ and why,
verdicts. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.offsets.spans import Extents

#: Kinds of differences.
MISSING, TWICE, CONTENT, ORDER = "missing_at_target", "twice_at_target", "content", "order"
FOREIGN, NOT_MAPPED, STAGE = "foreign_at_target", "not_mapped", "stage_differs"
TARGET_GONE = "target_gone"
#: What is no difference (docs/trust.md says what each means).
TRIMMED, TARGET_TRIMMED, STAGE_TRIMMED = "source_trimmed", "target_trimmed", "stage_trimmed"
GIVEN_UP, PARKED, FORGOTTEN, ECHO = "given_up", "parked", "forgotten", "echo"
SUPERSEDED, OTHERS = "superseded", "others"
ALTERED_TIMESTAMP = "altered_timestamp"
#: The verdict of a range without differences, and of which nothing was left to other reasons.
PROVEN = "proven"
#: Verdicts of ranges without differences.
WHOLE = (PROVEN, TRIMMED, SUPERSEDED)

_NONE = OffsetRanges()


@dataclass(frozen=True)
class Allowances:
    """What may differ, and why.

    Attributes:
        source_start: where the source's log begins now.
        source_compacts, target_compacts: the topic is compacted there, so that records may be gone.
        target_start: where the target's log begins now.
        target_keeps_from: records with an older timestamp (ms) may have been deleted by the target
            topic's retention; None: it deletes none.
        target_keeps_deletions_ms: for how long a compacted target topic keeps a deletion (a null
            value).
        last_of_key: the source offsets that compaction has to leave at the target; None: not looked
            up.
        left_out: source offsets by reason: GIVEN_UP, PARKED, FORGOTTEN, STAGE_TRIMMED.
        others: ranges of target offsets that others wrote, or that this flow was just writing: what
            of them its map does not have is not compared.
        shared: what at the target does not say that it came from the source is another's.
        others_anywhere: whatever the map does not know at the target may be another producer's.
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
    first of them is, or should be, at the target. What is foreign there has the source offset of
    the record behind which it lies."""

    kind: str
    first: int
    last: int
    count: int = 1
    target_offset: int | None = None
    detail: str = ""


@dataclass(frozen=True)
class Verdict:
    """What came of a comparison: differences by source offset, and how many records were left out,
    by reason."""

    differences: tuple[Difference, ...]
    excused: Mapping[str, int]

    @property
    def word(self) -> str:
        """PROVEN; SUPERSEDED where the target has compacted away some of it, and has all that it
        must have; TRIMMED where the stage equals the target and the source cannot be asked any more
        for all of it; or the kind of the first difference."""
        if self.differences:
            return self.differences[0].kind
        if self.excused.get(SUPERSEDED):
            return SUPERSEDED
        return TRIMMED if self.excused.get(TRIMMED) else PROVEN
