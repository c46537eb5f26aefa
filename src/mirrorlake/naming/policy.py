"""How a flow names its topics on the target, and what follows from a name (KIP-382, KIP-690,
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
    """What a class of the user's own must answer, from names alone and always alike.

    It is constructed with those of the keyword arguments `separator` (str), `aliases` (frozenset of
    all clusters' aliases) and `source_alias` (str) that its constructor takes. Heartbeats topics
    are never put to it.

    Laws: `source_of(remote_topic(a, t)) == a` and `upstream_topic(remote_topic(a, t)) == t`;
    without them cycles are not recognised, and `plan` refuses flows that would form a cycle.
    """

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Name on the target of `topic` of the cluster `source_alias` (MirrorMaker 2's
        formatRemoteTopic)."""
        ...

    def source_of(self, topic: str) -> str | None:
        """Alias of the cluster that `topic` was mirrored from, None for a topic of this cluster
        (topicSource)."""
        ...

    def upstream_topic(self, topic: str) -> str | None:
        """Name that `topic` has on the cluster it was mirrored from, None if it was not mirrored
        (upstreamTopic)."""
        ...


class ReplicationPolicy(NamingPolicy, Protocol):
    """What `Naming` asks of a policy, about all topics but heartbeats."""

    def remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """What the mirrors of all topics begin with whose names begin with `prefix`; None where
        that cannot be known."""
        ...


@dataclass(frozen=True)
class DefaultPolicy:
    """MirrorMaker 2's DefaultReplicationPolicy over known `aliases`: `alias.topic`, and `b.a.topic`
    after two hops.

    A name begins with the one of the `readable_aliases` that it begins with, so that an alias may
    hold the separator where nothing else could be meant: every name can be read in one way.
    """

    separator: str = "."
    aliases: frozenset[str] = frozenset()

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Put the source's alias before the name."""
        return f"{source_alias}{self.separator}{topic}"

    def remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """Put the source's alias before it."""
        return self.remote_topic(source_alias, prefix)

    def source_of(self, topic: str) -> str | None:
        """The known alias with a separator behind it that the name begins with."""
        readable = readable_aliases(self.aliases, self.separator)
        return next((alias for alias in readable if topic.startswith(alias + self.separator)), None)

    def upstream_topic(self, topic: str) -> str | None:
        """Name without its first alias."""
        alias = self.source_of(topic)
        return None if alias is None else topic.removeprefix(alias + self.separator)

    def cycle_regex(self, target_alias: str) -> str | None:
        """Regex of the names of topics that have been on the target: any number of known aliases,
        then the target's, then anything. None where the target's alias cannot stand in a name."""
        if target_alias not in readable_aliases(self.aliases, self.separator):
            return None
        return f"{self.prefixes_regex()}{escape(target_alias + self.separator)}.*"

    def prefixes_regex(self) -> str:
        """Regex of any number of known aliases, each with the separator behind it."""
        readable = sorted(readable_aliases(self.aliases, self.separator))
        return (
            f"(?:(?:{'|'.join(map(escape, readable))}){escape(self.separator)})*"
            if readable
            else ""
        )


@dataclass(frozen=True)
class IdentityPolicy:
    """MirrorMaker 2's IdentityReplicationPolicy (KIP-690): names stay.

    Since names do not show it, it cannot protect from cycles. `source_alias` is what `source_of`
    answers (MirrorMaker 2's `source.cluster.alias`).
    """

    source_alias: str

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Keep the name."""
        return topic

    def remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """Keep it; all topics have nothing in common that those of the target have not."""
        return prefix or None

    def source_of(self, topic: str) -> str | None:
        """Answer `source_alias`."""
        return self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Answer the same name."""
        return topic


def escape(text: str) -> str:
    """Quote text for a regex that Java and Python read alike."""
    return "".join(
        char if char.isalnum() and char.isascii() or char == "_" else f"\\{char}" for char in text
    )


def is_usable_alias(alias: str, separator: str) -> bool:
    """Whether MirrorMaker 2's clients read `alias` back from `alias + separator + topic`: they cut
    at the first separator."""
    return bool(alias) and f"{alias}{separator}".index(separator) == len(alias)


@cache
def readable_aliases(aliases: frozenset[str], separator: str) -> frozenset[str]:
    """Those that can be read back from `alias + separator + topic`, whatever the topic is called:
    such a name begins with no other one (of `eu` and `eu.west`, `eu.west.x` is the topic `west.x`
    of `eu`)."""
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
    """Say why Kafka would refuse a topic name, None if legal (Kafka's Topic.validate: up to 249
    characters)."""
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
