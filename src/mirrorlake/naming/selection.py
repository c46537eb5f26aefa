"""Which topics of a source a flow mirrors: MirrorMaker 2's rule, as a test of one name and as one
regex for Spark.

The rule (docs/mm2.md, "Which topics are mirrored"): (any include matches the whole name and no
exclude does, or it is a heartbeats topic and those are mirrored), and it is not internal and not a
cycle.
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
_GROUP = re.compile(r"\((?:\?(?:[:=!]|<[=!]|[is]+:)|(?![?]))")
_ESCAPE = re.compile(r"\\(?:[^a-zA-Z0-9]|[dDwWsSbBAtnrf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
_CLASS_ESCAPE = re.compile(r"\\(?:[^a-zA-Z0-9]|[dDwWsStnrf]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")


@dataclass(frozen=True)
class TopicSelection:
    """The topics of a source that a flow to `target` mirrors; `include` and `exclude` are regexes
    of whole names.

    `heartbeats` mirrors heartbeats topics even if they are not listed (KIP-1089).
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    naming: Naming
    target: str
    heartbeats: bool = True

    def selects(self, topic: str) -> bool:
        """Whether the flow mirrors this topic of its source (MirrorMaker 2's
        shouldReplicateTopic)."""
        if self.naming.is_internal(topic):
            return False
        wanted = matches_any(self.include, topic) and not matches_any(self.exclude, topic)
        return (
            wanted or (self.heartbeats and self.naming.is_heartbeats(topic))
        ) and not self.naming.is_cycle(topic, self.target)

    def lands(self, topic: str) -> bool:
        """Whether `java_pattern` matches the topic: all that `selects` does, and more under a
        user's own policy."""
        return _compiled(self.java_pattern()).fullmatch(topic) is not None

    def java_pattern(self) -> str:
        """Give one regex that fully matches the selected names, for engines that take a pattern.

        It never matches less than `selects` does, and exactly that under our own policies. A cycle
        that only a user's own policy can tell is no regex: then it matches more, and `selects`
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
    """Whether one of the regexes matches the whole name; none of an empty list does (topics and
    groups alike)."""
    return any(_compiled(pattern).fullmatch(name) for pattern in patterns)


def check_pattern(pattern: str) -> str | None:
    """Say why a regex cannot be used, None if it can: it must compile, and mean the same to Java
    and to Python.

    Many patterns become one, so back references and named groups, which count across it, are
    refused as well.
    """
    position, in_class = 0, False
    while position < len(pattern):
        step = _class_token(pattern, position) if in_class else _token(pattern, position)
        if isinstance(step, str):
            return step
        opened, closed = (
            not in_class and pattern[position] == "[",
            in_class and pattern[position] == "]",
        )
        in_class = (in_class or opened) and not closed
        position += step
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return None


def _token(pattern: str, position: int) -> int | str:
    """Length of the token outside a character class at `position`, or why it is refused."""
    char = pattern[position]
    if char == "[":
        start = 2 if pattern.startswith("[^", position) else 1
        if pattern.startswith("]", position + start):
            return "write ] as \\] within [ ]"
        return start
    for lead, known in (("\\", _ESCAPE), ("(", _GROUP), ("{", _REPEAT)):
        if char == lead:
            match = known.match(pattern, position)
            return len(match[0]) if match else _refusal(pattern, position)
    return 1


def _class_token(pattern: str, position: int) -> int | str:
    """Length of the token inside a character class at `position`, or why it is refused."""
    if pattern[position] == "\\":
        match = _CLASS_ESCAPE.match(pattern, position)
        return len(match[0]) if match else _refusal(pattern, position)
    if pattern[position] == "[" or pattern.startswith(("&&", "||", "~~", "--"), position):
        return (
            f"{pattern[position]} within [ ] means a set operation to Java or Python; write it "
            "with a backslash"
        )
    return 1


def _refusal(pattern: str, position: int) -> str:
    part = pattern[position : position + 3]
    return (
        f"{part!r} at position {position} is not a syntax that Java and Python share, or it "
        "counts groups"
    )


def _either(patterns: Sequence[str]) -> str:
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def _unless(regex: str) -> str:
    return f"(?!(?:{regex})$)"


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
