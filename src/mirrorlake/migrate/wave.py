"""Which groups move in one call of migrate, and how."""

import re
from dataclasses import dataclass

from mirrorlake.errors import InputError

#: MirrorMaker 2's default policy; under its identity policy a copy is called `{topic}`.
DEFAULT_COPIES = "{source}.{topic}"
EVERY_NAME = ".*"


@dataclass(frozen=True)
class Wave:
    """What is to be moved, and how.

    Attributes:
        topics: regex of whole names of source topics.
        groups: regex of whole names of groups.
        copies: how MirrorMaker 2 names its copies: a text with `{topic}`, and `{source}` for the
            alias.
        rollback: from our copies to those of MirrorMaker 2.
        dry_run: change nothing.
        inexact: move positions too that some records behind were read of already.
    """

    topics: str = EVERY_NAME
    groups: str = EVERY_NAME
    copies: str = DEFAULT_COPIES
    rollback: bool = False
    dry_run: bool = False
    inexact: bool = False

    def check(self) -> None:
        """Raise InputError for what cannot be."""
        for option, pattern in (("--topics", self.topics), ("--groups", self.groups)):
            try:
                re.compile(pattern)
            except re.error as error:
                raise InputError(f"{option} {pattern} is no regular expression: {error}") from None
        rest = self.copies.replace("{topic}", "", 1).replace("{source}", "", 1)
        if "{topic}" not in self.copies or "{" in rest or "}" in rest:
            raise InputError(
                f"--copies {self.copies}: write it as {DEFAULT_COPIES}, or {{topic}} for the same "
                "names"
            )

    def copy_of(self, source: str, topic: str) -> str:
        """Name of MirrorMaker 2's copy of a topic."""
        return self.copies.replace("{source}", source).replace("{topic}", topic)

    def topic_of(self, source: str, copy: str) -> str:
        """The topic of which a topic of that name would be MirrorMaker 2's copy; empty: of none."""
        first, _, last = self.copies.replace("{source}", source).partition("{topic}")
        named = copy.startswith(first) and copy.endswith(last)
        return copy[len(first) : len(copy) - len(last)] if named else ""
