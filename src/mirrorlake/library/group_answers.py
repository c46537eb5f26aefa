"""The library's answers about positions of groups: where they stand, lead, and were moved. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mirrorlake.library import html
from mirrorlake.library.answers import Answer, Rows

_UNCHANGED = ", a dry run: nothing was changed"


@dataclass(frozen=True)
class Position(Answer):
    """The next offset to read of a partition on the other cluster.

        lake.translate("east->west", "orders", 0, 42).offset

    Attributes:
        topic: the topic's name there.
        partition: the same as in the given position.
        offset: reading from here skips no record and, if `exact`, repeats none.
        exact: if False, the position is not replicated yet and `offset` is the highest safe one,
            from which records are read again and none is missed; or the source's log is no longer
            the mirrored one, and the position means nothing in it.
        reason: why it is not exact; None if it is.
    """

    topic: str
    partition: int
    offset: int
    exact: bool
    reason: str | None = None

    def _repr_html_(self) -> str:
        return html.table([self.to_dict()])


@dataclass(frozen=True)
class Groups(Answer):
    """The positions of a flow's consumer groups on both sides.

        for row in lake.groups("east->west", ["billing"]).groups: print(row)

    Attributes:
        flow: the flow.
        source_unreachable, target_unreachable: why a side was not asked; None when it answered.
        untold: why a cluster may have more groups than it reported.
        errors: why a group was not reported, by group.
        not_mirrored: groups that no command moves, with the reason.
        topics_waiting: topics whose positions translate to none until an operator decides, with the
            reason.
        groups: a row per group and partition. Positions are the next offset to read, lags count
            records, None is not known. `read_again_at_most`: records that the group would read
            twice after a failover now; `gone_at_most`: records that it has not read and that are
            gone from the target; both are None for a position without a counterpart at the target.
            `reads_uncommitted`: its position at the target lies behind uncommitted records, so it
            reads such records.
    """

    flow: str
    source_unreachable: str | None
    target_unreachable: str | None
    untold: list[str]
    errors: dict[str, str]
    not_mirrored: dict[str, str]
    topics_waiting: dict[str, str]
    groups: Rows

    @property
    def complete(self) -> bool:
        """Whether both sides reported everything and no topic waits."""
        is_reported = (
            self.source_unreachable is None and self.target_unreachable is None and not self.untold
        )
        return is_reported and not self.errors and not self.topics_waiting

    @property
    def headline(self) -> tuple[str, bool]:
        unasked = filter(None, (self.source_unreachable, self.target_unreachable))
        return "; ".join([f"flow {self.flow}", *unasked]), self.complete


@dataclass(frozen=True)
class Divergence(Answer):
    """Records that a flow's target never got; offsets are inclusive.

        lake.flows["east->west"].divergence().staged_only

    Attributes:
        flow: the flow.
        staged_only: those that the lake has: topic, partition, first_offset, last_offset and
            record_count.
        never_staged: those that the lake lacks too: topic, partition, first_offset, last_offset and
            sampled_at.
        sampled_at: when the flow was sampled last; what its source got later is not known. None
            for never, as of one that selects no topic: then nothing is known of what the lake
            lacks.
    """

    flow: str
    staged_only: Rows
    never_staged: Rows
    sampled_at: datetime | None

    @property
    def headline(self) -> tuple[str, bool]:
        if self.staged_only or self.never_staged:
            return f"flow {self.flow}: its target lacks records", False
        if self.sampled_at is None:
            return f"flow {self.flow}: never sampled, so what its source has is not known", False
        return f"flow {self.flow}", True


@dataclass(frozen=True)
class Moves(Answer):
    """What `failover` or `failback` did, or would do.

        moves = lake.failover("east->west", ["billing"], dry_run=True)
        moves.complete or print(*moves.left, sep="\\n")

    Attributes:
        flow: the flow.
        command: failover or failback.
        dry_run: nothing was changed.
        complete: nothing is left.
        origin_unreachable: why the cluster that the groups leave was not asked; None when it
            answered.
        drained: how far each flow was caught up first.
        groups: a row per group and partition: the positions on both sides, and what was `done`.
        warnings: what to know before consumers start, a sentence each.
        left: what is not as it should be, a sentence each; calling again keeps what was done.
        staged_only, never_staged, sampled_at: records that never reached the target, and as of
            when, as in `Divergence`, if the origin did not answer; else None.
    """

    flow: str
    command: str
    dry_run: bool
    complete: bool
    origin_unreachable: str | None
    drained: Rows
    groups: Rows
    warnings: list[str]
    left: list[str]
    staged_only: Rows | None = None
    never_staged: Rows | None = None
    sampled_at: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain mappings and lists, without what never reached the target, if not asked for."""
        parts = {"staged_only", "never_staged", "sampled_at"}
        unasked = parts if self.staged_only is None else set()
        return {name: value for name, value in super().to_dict().items() if name not in unasked}

    @property
    def headline(self) -> tuple[str, bool]:
        done = f"{self.command} of {self.flow}{_UNCHANGED if self.dry_run else ''}"
        return done, self.complete


@dataclass(frozen=True)
class Migrated(Answer):
    """What `migrate` did with a wave of groups, or would do.

        lake.migrate("east->west", topics="orders", groups="billing", dry_run=True).left

    Attributes:
        flow: the flow.
        rollback: from our copies to MirrorMaker 2's.
        dry_run: nothing was changed.
        complete: nothing is left.
        groups: a row per group and partition: the positions on both topics, whether the translation
            is `exact`, the `method` that located it, and what was `done`.
        warnings: groups that no command moves, a sentence each.
        left: what is not as it should be, a sentence each.
    """

    flow: str
    rollback: bool
    dry_run: bool
    complete: bool
    groups: Rows
    warnings: list[str]
    left: list[str]

    @property
    def headline(self) -> tuple[str, bool]:
        to = "back to MirrorMaker 2's copies" if self.rollback else "to our copies"
        done = f"groups of {self.flow} {to}{_UNCHANGED if self.dry_run else ''}"
        return done, self.complete
