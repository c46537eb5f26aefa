"""The groups that one call of migrate moves, and how."""

import re
from dataclasses import dataclass

from mirrorlake.errors import InputError

#: The names under MirrorMaker 2's default policy; under its identity policy it is `{topic}`.
DEFAULT_COPIES = "{source}.{topic}"
EVERY_NAME = ".*"


@dataclass(frozen=True)
class Wave:
    """What to move, and how.

    Attributes:
        topics: regex that source topics match as a whole.
        groups: regex that groups match as a whole.
        copies: how MirrorMaker 2 names its copies: a template with `{topic}`, and `{source}` for
            the alias.
        rollback: from our copies to those of MirrorMaker 2.
        dry_run: change nothing.
        inexact: also move positions from which some records are read a second time.
    """

    topics: str = EVERY_NAME
    groups: str = EVERY_NAME
    copies: str = DEFAULT_COPIES
    rollback: bool = False
    dry_run: bool = False
    inexact: bool = False

    def check(self) -> None:
        """Raise InputError for an invalid pattern or template."""
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

    def names_group(self, group: str) -> bool:
        """Whether `groups` matches a group."""
        return re.fullmatch(self.groups, group) is not None

    def copy_of(self, source: str, topic: str) -> str:
        """The name of MirrorMaker 2's copy of a topic."""
        return self.copies.replace("{source}", source).replace("{topic}", topic)

    def topic_of(self, source: str, copy: str) -> str:
        """The topic whose copy by MirrorMaker 2 would have this name; empty if there is none."""
        first, _, last = self.copies.replace("{source}", source).partition("{topic}")
        named = copy.startswith(first) and copy.endswith(last)
        return copy[len(first) : len(copy) - len(last)] if named else ""
