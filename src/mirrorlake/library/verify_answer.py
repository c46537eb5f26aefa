"""The answer of `verify`."""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from mirrorlake.library.answers import Answer, Rows


@dataclass(frozen=True)
class Verified(Answer):
    """The result of a comparison by content.

        lake.verify(["east->west"], topics=["orders"]).differences

    Attributes:
        began, ended: when.
        ranges, records: how much was compared; records are counted in the stage.
        proven: how many of these records lie in ranges without a difference.
        proven_before: records that earlier comparisons had proven and this one skipped.
        bytes_read: of all three sides.
        excused: records that were left out, by reason (docs/trust.md).
        differences: each with flow, topic, partition, first_offset and last_offset (source offsets,
            inclusive), kind, record_count, target_offset and detail.
        not_compared: ranges that were selected but not compared, each with flow, topic, partition,
            generation, first_offset and last_offset (None: not known), reason and detail
            (docs/trust.md).
        audits: the rows added to the table `audits`, one per range; only the newest 20,000.
        cut: how many `ranges` are missing from `audits`, and how many `differences` are not listed
            because their range has more than 100.
    """

    began: datetime
    ended: datetime
    ranges: int
    records: int
    proven: int
    proven_before: int
    bytes_read: int
    excused: dict[str, int]
    differences: Rows
    not_compared: Rows
    audits: Rows
    cut: dict[str, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether nothing differs and all that was selected is compared, but records in flight."""
        return not self.differences and all(
            row["reason"] == "in_flight" for row in self.not_compared
        )

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain mappings and lists, without the rows of `audits`."""
        return {name: value for name, value in super().to_dict().items() if name != "audits"}

    @property
    def cut_sentences(self) -> list[str]:
        """What the answer omits because of its size, and how to get it: a sentence each."""
        sentences = []
        if self.cut.get("differences"):
            sentences.append(
                f"{self.cut['differences']:,} differences more are not listed, since their ranges "
                "have over 100 each: compare fewer offsets at a time, by mirrorlake verify "
                "--again --topic TOPIC --offsets FIRST:LAST"
            )
        if self.cut.get("ranges"):
            sentences.append(
                f"{self.cut['ranges']:,} ranges more were compared than are listed as evidence; "
                "the table audits has "
                f'all: mirrorlake sql "SELECT * FROM audits WHERE audited_at >= '
                f"CAST('{self.began.isoformat(sep=' ', timespec='seconds')}' AS TIMESTAMP)\""
            )
        return sentences

    def write(self, file: Path) -> None:
        """Write the evidence: a self-contained page for `.html`, else JSON. Raises OSError."""
        from mirrorlake.verify.evidence import evidence

        document = {**self.to_dict(), "audits": self.audits, "cut_sentences": self.cut_sentences}
        file.write_text(evidence(document, file.suffix == ".html"), encoding="utf-8")

    @property
    def headline(self) -> tuple[str, bool]:
        return f"{self.proven:,} of {self.records:,} records proven by content", self.complete
