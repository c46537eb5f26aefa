"""The topics of a source that a flow mirrors: MirrorMaker 2's rule, as a test of one name and as
one regex.

The rule (docs/mm2.md, "Which topics are mirrored"): (any include matches the whole name and no
exclude does, or it is a heartbeats topic and those are mirrored), and not internal or a cycle.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mirrorlake.naming.naming import Naming

DEFAULT_TOPICS_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", "__.*")
"""MirrorMaker 2's `topics.exclude` since KIP-1074."""
DEFAULT_GROUPS_EXCLUDE = ("console-consumer-.*", "connect-.*", "__.*")
"""MirrorMaker 2's `groups.exclude`."""

_NOTHING = "(?!)"


@dataclass(frozen=True)
class TopicSelection:
    """What a flow to `target` mirrors; `include` and `exclude` are regexes of whole names.

    `heartbeats` mirrors heartbeats topics even if they are not listed (KIP-1089).
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    naming: Naming
    target: str
    heartbeats: bool = True

    def selects(self, topic: str) -> bool:
        """Whether the flow mirrors this topic (MirrorMaker 2's shouldReplicateTopic)."""
        if self.naming.is_internal(topic):
            return False
        wanted = matches_any(self.include, topic) and not matches_any(self.exclude, topic)
        return (
            wanted or (self.heartbeats and self.naming.is_heartbeats(topic))
        ) and not self.naming.is_cycle(topic, self.target)

    def lands(self, topic: str) -> bool:
        """Whether `java_pattern` matches: all that `selects` does, and more by a user's policy."""
        return _compiled(self.java_pattern()).fullmatch(topic) is not None

    def java_pattern(self) -> str:
        """Return one regex that fully matches the selected names, for engines that take a pattern.

        It never matches less than `selects`, and exactly the same under our own policies. A cycle
        that only a user's policy can detect has no regex: then it matches more, and `selects`
        decides what goes to the target.
        """
        refused = [self.naming.internal_regex(), self.naming.cycle_regex(self.target)]
        guards = "".join(_unless(regex) for regex in refused if regex is not None)
        choices = [self.naming.heartbeats_regex()] if self.heartbeats else []
        if self.include:
            choices.append(
                (_unless(_either(self.exclude)) if self.exclude else "")
                + f"(?:{_either(self.include)})"
            )
        return f"{guards}(?:{'|'.join(choices)})" if choices else _NOTHING


def matches_any(patterns: Sequence[str], name: str) -> bool:
    """Whether one of the regexes matches the whole name, of a topic or a group."""
    return any(_compiled(pattern).fullmatch(name) for pattern in patterns)


def _either(patterns: Sequence[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def _unless(regex: str) -> str:
    return f"(?!(?:{regex})$)"


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    # As in Java, \w, \d, \s, \b and case folding are ASCII only.
    return re.compile(pattern, re.ASCII)
