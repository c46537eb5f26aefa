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


class ReplicationPolicy(Protocol):
    """What mirrorlake asks of a naming policy. A user's own class has less to do:
    `custom_policy.NamingPolicy`."""

    @property
    def separator(self) -> str:
        """Text between an alias and a topic, and within internal topics' names."""
        ...

    @property
    def aliases(self) -> frozenset[str]:
        """Aliases of all clusters."""
        ...

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Name on the target of `topic` of the cluster `source_alias` (formatRemoteTopic)."""
        ...

    def source_of(self, topic: str) -> str | None:
        """Alias of the cluster that `topic` was mirrored from, None for a topic of this cluster
        (topicSource)."""
        ...

    def upstream_topic(self, topic: str) -> str | None:
        """Name that `topic` has on the cluster it was mirrored from, None if it was not mirrored
        (upstreamTopic)."""
        ...

    def remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """What the mirrors of all topics begin with whose names begin with `prefix`; None where
        that cannot be said.

        Heartbeats topics may be named otherwise.
        """
        ...

    def cycle_regex(self, target_alias: str) -> str | None:
        """Regex that fully matches only names for which `is_cycle` holds; None for no name at all.

        It may match fewer (more is landed than mirrored then), never others. Ours match exactly
        those.
        """
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
        """Any number of known aliases, then the target's, then anything."""
        if target_alias not in readable_aliases(self.aliases, self.separator):
            return None
        return f"{_prefixes(self)}{escape(target_alias + self.separator)}.*"


@dataclass(frozen=True)
class IdentityPolicy:
    """MirrorMaker 2's IdentityReplicationPolicy (KIP-690): names stay, except heartbeats, which
    take the alias.

    Since names do not show it, it cannot protect from cycles of any other topic. `source_alias` is
    what `source_of` answers for those (MirrorMaker 2's `source.cluster.alias`). MirrorMaker 2
    treats every name that ends in `heartbeats`, such as `my-heartbeats`, as a heartbeats topic
    here; mirrorlake only the ones that `is_heartbeats` knows.
    """

    separator: str = "."
    aliases: frozenset[str] = frozenset()
    source_alias: str | None = None

    def remote_topic(self, source_alias: str, topic: str) -> str:
        """Keep the name; a heartbeats topic takes the alias, as under the default policy."""
        return (
            default_names(self).remote_topic(source_alias, topic)
            if is_heartbeats(self, topic)
            else topic
        )

    def remote_prefix(self, source_alias: str, prefix: str) -> str | None:
        """Keep it; all topics have nothing in common that those of the target have not."""
        return prefix or None

    def source_of(self, topic: str) -> str | None:
        """Answer `source_alias`, but for a heartbeats topic the alias in its name."""
        return (
            default_names(self).source_of(topic)
            if is_heartbeats(self, topic)
            else self.source_alias
        )

    def upstream_topic(self, topic: str) -> str | None:
        """Answer the same name, but for a heartbeats topic the name without its first alias."""
        return default_names(self).upstream_topic(topic) if is_heartbeats(self, topic) else topic

    def cycle_regex(self, target_alias: str) -> str | None:
        """Heartbeats topics that have been on the target; nothing else is recognised as a cycle."""
        return heartbeats_cycle_regex(self, target_alias)


def default_names(policy: ReplicationPolicy) -> DefaultPolicy:
    """Give the default policy with the same separator and aliases: it names heartbeats topics under
    every policy."""
    return DefaultPolicy(policy.separator, policy.aliases)


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


def is_internal(topic: str, separator: str) -> bool:
    """Whether a topic is Kafka's or MirrorMaker 2's own (4.1.1's rule, KIP-1074; docs/mm2.md,
    "Which topics are mirrored")."""
    return (
        topic.startswith(("__", "."))
        or (topic.startswith("mm2") and topic.endswith(f"{separator}internal"))
        or topic.endswith(f"{separator}checkpoints{separator}internal")
    )


def internal_regex(separator: str) -> str:
    """Regex that fully matches exactly the names for which `is_internal` holds."""
    sep = escape(separator)
    return rf"(?:__|\.).*|(?=mm2).*{sep}internal|.*{sep}checkpoints{sep}internal"


def called_heartbeats(topic: str) -> bool:
    """Whether the name is that of a `heartbeats` topic by the default policy, whatever policy the
    flow has."""
    return topic.rpartition(".")[2] == HEARTBEATS


def is_heartbeats(policy: ReplicationPolicy, topic: str) -> bool:
    """Whether the topic is some cluster's `heartbeats`, after any number of hops
    (isHeartbeatsTopic, docs/mm2.md, "Which topics are mirrored").

    Heartbeats topics are named by the default policy whatever the flow's is, so that MirrorMaker
    2's tools read them.
    """
    names = default_names(policy)
    while (upstream := names.upstream_topic(topic)) is not None:
        topic = upstream
    return topic == HEARTBEATS


def heartbeats_regex(policy: ReplicationPolicy) -> str:
    """Regex that fully matches exactly the names for which `is_heartbeats` holds."""
    return _prefixes(policy) + HEARTBEATS


def heartbeats_cycle_regex(policy: ReplicationPolicy, target_alias: str) -> str | None:
    """Regex of the heartbeats topics that have been on the target; None if the alias cannot stand
    in a name."""
    cycle = default_names(policy).cycle_regex(target_alias)
    return None if cycle is None else cycle.removesuffix(".*") + heartbeats_regex(policy)


def _prefixes(policy: ReplicationPolicy) -> str:
    """Regex of any number of known aliases, each with the separator behind it."""
    readable = sorted(readable_aliases(policy.aliases, policy.separator))
    return (
        f"(?:(?:{'|'.join(map(escape, readable))}){escape(policy.separator)})*" if readable else ""
    )


def is_cycle(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Whether the topic has already been on the target, so mirroring it would be a cycle (isCycle,
    docs/mm2.md, "Which topics are mirrored")."""
    seen = {topic}  # a user's own policy may lead back to a name
    while (source := policy.source_of(topic)) is not None:
        if source == target_alias:
            return True
        upstream = policy.upstream_topic(topic)
        if upstream is None or upstream in seen:
            return False
        seen.add(upstream)
        topic = upstream
    return False


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
