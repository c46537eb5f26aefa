"""What `replay` and `restore` answer with. Pure."""

from dataclasses import dataclass, field
from typing import Any

from mirrorlake.library.answers import Answer, Rows


@dataclass(frozen=True)
class Resent(Answer):
    """What was sent again from the stage, or with a dry run what would be.

        lake.restore("east", "west", topics=["orders"], dry_run=True).topics

    Attributes:
        topics: topic, target_topic and records of each; records are those at the target, of earlier
            calls of the same resend too.
        flow: what the resend is called in the map and in `changes`; None where nothing was to be
            sent.
        dry_run: nothing was done.
        continued: it had begun before, and went on.
        complete: all of it is at the target. If not, the same call goes on; or, as `warnings` say,
            the target has another number of records than were picked.
        examples: of a dry run of a replay the first records: partition, offset, timestamp, key, and
            value up to some bytes, as text.
        warnings: what to know about it, a sentence each.
        reached: of a restore topic, partition, end and newest_at of each partition: the source
            offset behind its last record, and the time of its newest one.
        configs: of a restore that was asked for them: topic, before, after and error of each that
            is set.
        acls: the same: pattern, name, principal, host, operation, permission and error of each that
            is made.
        groups: the same: group, topic, partition and position at the source, to_topic and
            to_position, what was done ("moved", "would move", "there", "kept", "failed"), and
            detail.
    """

    topics: Rows
    flow: str | None
    dry_run: bool
    continued: bool
    complete: bool
    examples: Rows = field(default_factory=Rows)
    warnings: list[str] = field(default_factory=list)
    reached: Rows = field(default_factory=Rows)
    configs: Rows = field(default_factory=Rows)
    acls: Rows = field(default_factory=Rows)
    groups: Rows = field(default_factory=Rows)

    @property
    def records(self) -> int:
        """How many records of all topics."""
        return sum(row["records"] for row in self.topics)

    @property
    def headline(self) -> tuple[str, bool]:
        """How many were sent."""
        done = "would be sent" if self.dry_run else "were sent"
        return f"{self.records:,} records {done}", self.complete or self.dry_run


def shown(value: Any) -> str | None:
    """Bytes of a record as a person can read them: text, with what cannot be shown as a dot."""
    if value is None:
        return None
    text = bytes(value).decode("utf-8", errors="replace")
    return "".join(letter if letter.isprintable() else "\u00b7" for letter in text)
