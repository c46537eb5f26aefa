"""How a flow names its topics on the target, and how such names are read (KIP-382, KIP-690,
KIP-1074; docs/mm2.md, "Which topics are mirrored").

Unlike MirrorMaker 2, a prefix counts as a source only if it is the alias of a known cluster:
`orders.v1` is a topic of its own, not a mirror from a cluster `orders`.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Protocol

HEARTBEATS = "heartbeats"
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


class NamingPolicy(Protocol):
    """The interface of a user's policy class. Answers must depend on names alone.

    Its constructor gets those of the keyword arguments `separator` (str), `aliases` (frozenset of
    all clusters' aliases) and `source_alias` (str) that it accepts. It is never asked about
    heartbeats topics.

    Laws: `source_of(remote_topic(a, t)) == a` and `upstream_topic(remote_topic(a, t)) == t`;
    without them cycles are not recognised, and `plan` refuses flows that would form a cycle.
    """

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """The target's name of `topic` from `source_alias` (MirrorMaker 2's formatRemoteTopic)."""
        ...

    def source_of(self, topic: str) -> str | None:
        """The alias that `topic` was mirrored from, None if it originates here (topicSource)."""
        ...

    def upstream_topic(self, topic: str) -> str | None:
        """The name of `topic` where it was mirrored from, None if it was not (upstreamTopic)."""
        ...


class ReplicationPolicy(NamingPolicy, Protocol):
    """The interface that `Naming` uses, for all topics except heartbeats topics."""

    def remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """The common prefix of the mirrors of topics that begin with `prefix`; None if unknown."""
        ...


@dataclass(frozen=True)
class DefaultPolicy:
    """MirrorMaker 2's DefaultReplicationPolicy over known `aliases`: `alias.topic`, and `b.a.topic`
    after two hops.

    Only `readable_aliases` count as prefixes, so that an alias may contain the separator if that is
    unambiguous: every name has one reading.
    """

    separator: str = "."
    aliases: frozenset[str] = frozenset()

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Put the source's alias before the name."""
        return f"{source_alias}{self.separator}{topic}"

    def remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """Put the source's alias before the prefix."""
        return self.remote_topic(source_alias, prefix)

    def source_of(self, topic: str) -> str | None:
        """The known alias that the name begins with, followed by a separator."""
        readable = readable_aliases(self.aliases, self.separator)
        return next((alias for alias in readable if topic.startswith(alias + self.separator)), None)

    def upstream_topic(self, topic: str) -> str | None:
        """The name without its first alias."""
        alias = self.source_of(topic)
        return None if alias is None else topic.removeprefix(alias + self.separator)

    def cycle_regex(self, target_alias: str) -> str | None:
        """Regex of topics that have been on the target: any number of known aliases, then the
        target's, then anything. None if the target's alias cannot be in a name."""
        if target_alias not in readable_aliases(self.aliases, self.separator):
            return None
        return f"{self.prefixes_regex()}{escape(target_alias + self.separator)}.*"

    def prefixes_regex(self) -> str:
        """Regex of any number of known aliases, each followed by the separator."""
        readable = sorted(readable_aliases(self.aliases, self.separator))
        return (
            f"(?:(?:{'|'.join(map(escape, readable))}){escape(self.separator)})*"
            if readable
            else ""
        )


@dataclass(frozen=True)
class IdentityPolicy:
    """MirrorMaker 2's IdentityReplicationPolicy (KIP-690): names stay.

    Names do not show the source, so it cannot protect from cycles. `source_of` always returns
    `source_alias` (MirrorMaker 2's `source.cluster.alias`).
    """

    source_alias: str

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Keep the name."""
        return topic

    def remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """Keep the prefix; None if it is empty, which does not tell mirrors from other topics."""
        return prefix or None

    def source_of(self, topic: str) -> str | None:
        """Return `source_alias`."""
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Return the same name."""
        return topic


def escape(text: str) -> str:
    """Quote text for a regex of both Java and Python."""
    return "".join(
        char if char.isalnum() and char.isascii() or char == "_" else f"\\{char}" for char in text
    )


def is_usable_alias(alias: str, separator: str) -> bool:
    """Whether MirrorMaker 2's clients, which split at the first separator, parse `alias`."""
    return bool(alias) and f"{alias}{separator}".index(separator) == len(alias)


@cache
def readable_aliases(aliases: frozenset[str], separator: str) -> frozenset[str]:
    """The aliases that can be parsed from `alias + separator + topic` for any topic, since no other
    alias is a prefix of them (of `eu` and `eu.west`, `eu.west.x` is the topic `west.x` of `eu`)."""
    return frozenset(
        alias
        for alias in aliases
        if alias
        and not any(
            other and other != alias and f"{alias}{separator}".startswith(other + separator)
            for other in aliases
        )
    )


def check_topic_name(name: str) -> str | None:
    """Why Kafka would refuse a topic name, None if legal (Topic.validate: up to 249 characters)."""
    if not name:
        return "the name is empty"
    if name in (".", ".."):
        return f'the name must not be "{name}"'
    if len(name) > 249:
        return f"the name has {len(name)} characters, Kafka allows 249"
    if not _LEGAL.fullmatch(name):
        bad = next(char for char in name if not _LEGAL.fullmatch(char))
        return (
            f"the name holds {bad!r}, Kafka allows only letters, digits, dot, underscore and hyphen"
        )
    return None
