"""One side's records of a range as they are compared, and which are too many or too few. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Side:
    """The records of one side: offsets, timestamps (ms), and the digest of each (`digest.py`).

    `echo`: the record was on the target before. `own`: it is marked as coming from the source. Both
    are empty for flows without provenance. `sent`: for records that librdkafka cannot send
    unchanged, the digest of the form sent instead, by their own.
    """

    offsets: np.ndarray
    timestamps: np.ndarray
    digests: list[bytes]
    echo: np.ndarray
    own: np.ndarray
    sent: Mapping[bytes, bytes] = field(default_factory=dict)

    def in_order(self) -> "Side":
        """The same side by rising offsets; files of the stage may be out of order."""
        if len(self.offsets) < 2 or bool(np.all(self.offsets[1:] >= self.offsets[:-1])):
            return self
        at = np.argsort(self.offsets, kind="stable")
        echo, own = (marks[at] if len(marks) else marks for marks in (self.echo, self.own))
        digests = [self.digests[k] for k in at.tolist()]
        offsets, timestamps = self.offsets[at], self.timestamps[at]
        return Side(offsets, timestamps, digests, echo=echo, own=own, sent=self.sent)


@dataclass
class Expected:
    """A record that should exist. `targets` are its target offsets by the map, usually one."""

    offset: int
    digest: bytes
    timestamp: int
    staged: bool
    targets: list[int]


Mapped = tuple[np.ndarray, np.ndarray]
"""Source offsets, rising, and the target offset of each."""


def extra_records(expected: Iterable[Expected], got: list[tuple[int, bytes]]) -> dict[int, bytes]:
    """Target offsets of records that are there too often, preferably unmapped ones."""
    surplus = Counter(digest for _, digest in got)
    surplus.subtract(Counter(record.digest for record in expected))
    mapped = {at: record.digest for record in expected for at in record.targets[:1]}
    candidates = [record for record in got if surplus[record[1]] > 0]
    extra = {}
    for at, digest in sorted(
        candidates, key=lambda record: (mapped.get(record[0]) == record[1], -record[0])
    ):
        if surplus[digest] > 0:
            surplus[digest] -= 1
            extra[at] = digest
    return extra


def missing_records(expected: list[Expected], got: list[tuple[int, bytes]]) -> dict[int, Expected]:
    """By source offset, records that are too few there, preferably not where the map says."""
    surplus = Counter(record.digest for record in expected)
    surplus.subtract(Counter(digest for _, digest in got))
    there = dict(got)

    def is_there(record: Expected) -> bool:
        return any(there.get(at) == record.digest for at in record.targets)

    candidates = [record for record in expected if surplus[record.digest] > 0]
    missing = {}
    for record in sorted(candidates, key=lambda record: (is_there(record), -record.offset)):
        if surplus[record.digest] > 0:
            surplus[record.digest] -= 1
            missing[record.offset] = record
    return dict(sorted(missing.items()))
