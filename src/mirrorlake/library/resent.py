"""The answer of `replay` and `restore`. Pure."""

from dataclasses import dataclass, field
from typing import Any

from mirrorlake.library.answers import Answer, Rows


@dataclass(frozen=True)
class Resent(Answer):
    """What was sent again from the stage, or in a dry run would be.

        lake.restore("east", "west", topics=["orders"], dry_run=True).topics

    Attributes:
        topics: topic, target_topic and records of each; records counts those at the target, also
            from earlier calls of the same resend.
        flow: the name of the resend in the map and in `changes`; None if there was nothing to send.
        dry_run: nothing was done.
        continued: it had begun before, and was continued.
        complete: all records are at the target. If not, the same call continues; or, as `warnings`
            says, the target does not have as many records as were picked.
        examples: the first records, in a dry run of a replay: partition, offset, timestamp, and the
            key and beginning of the value as text.
        warnings: what to know about it, a sentence each.
        reached: for a restore, topic, partition, end and newest_at of each partition: the source
            offset behind its last record, and the timestamp of its newest one.
        configs: for a restore with this extra: topic, before, after and error of each config set.
        acls: likewise: pattern, name, principal, host, operation, permission and error of each ACL
            made.
        groups: likewise: group, topic, partition and position at the source, to_topic and
            to_position, done ("moved", "would move", "there", "kept", "failed"), and detail.
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
        """The number of records of all topics."""
        return sum(row["records"] for row in self.topics)

    @property
    def headline(self) -> tuple[str, bool]:
        done = "would be sent" if self.dry_run else "were sent"
        return f"{self.records:,} records {done}", self.complete or self.dry_run


def shown(value: Any) -> str | None:
    """Bytes of a record as readable text, with a dot for each character that cannot be printed."""
    if value is None:
        return None
    text = bytes(value).decode("utf-8", errors="replace")
    return "".join(letter if letter.isprintable() else "\u00b7" for letter in text)
