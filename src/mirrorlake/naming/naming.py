"""How topics of one cluster are named on another, and how names there are read (docs/mm2.md, "Which
topics are mirrored"): one value, made from the topology, shared by all code that names topics.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mirrorlake.naming.custom_policy import load_policy, policy_file, policy_hash
from mirrorlake.naming.policy import (
    HEARTBEATS,
    DefaultPolicy,
    IdentityPolicy,
    ReplicationPolicy,
    escape,
)


@dataclass(frozen=True)
class Naming:
    """How topics of the cluster `source` are named on a target (KIP-382, KIP-690).

    `policy_name` is default, identity, or a user's class, whose file is relative to `directory`; it
    is loaded on first use. Names may begin with any of `aliases`. `separator` comes between an
    alias and a topic, `internal_separator` is used in names of internal topics (KIP-949).

    Heartbeats topics are named by the default policy under every policy, so that MirrorMaker 2's
    tools read them. MirrorMaker 2 treats every name that ends in `heartbeats`, such as
    `my-heartbeats`, as one under its identity policy; mirrorlake only those of `is_heartbeats`.

    Every method raises TopologyError if a user's policy cannot be loaded, or fails to answer.
    """

    policy_name: str
    source: str
    aliases: frozenset[str] = frozenset()
    separator: str = "."
    internal_separator: str = "."
    directory: Path | None = None

    @cached_property
    def policy(self) -> ReplicationPolicy:
        """The policy for all topics except heartbeats topics."""
        if self.policy_name == "default":
            return self._default
        if self.policy_name == "identity":
            return IdentityPolicy(self.source)
        return load_policy(
            self.policy_name, self.separator, self.aliases, self.source, self.directory
        )

    @property
    def file(self) -> Path | None:
        """The file of a user's policy, if `policy_name` names one."""
        return policy_file(self.policy_name, self.directory)

    @property
    def file_hash(self) -> str | None:
        """SHA-256 of that file."""
        return policy_hash(self.policy_name, self.directory)

    @property
    def label(self) -> str:
        """The name of this naming in the table `changes`."""
        return self.policy_name if self.separator == "." else f"{self.policy_name} {self.separator}"

    def target_topic(self, topic: str) -> str:
        """The target's name of a source topic, whether or not it is mirrored."""
        return self._policy_of(topic).remote_topic(self.source, topic)

    def target_prefix(self, prefix: str) -> str | None:
        """The prefix of mirrors of topics with `prefix`, but heartbeats topics; None if unknown."""
        return self.policy.remote_prefix(self.source, prefix)

    def source_of(self, topic: str) -> str | None:
        """The alias of the cluster that a topic was mirrored from, None if it originates here."""
        return self._policy_of(topic).source_of(topic)

    def upstream_topic(self, topic: str) -> str | None:
        """A topic's name on the cluster that it was mirrored from, None if it was not mirrored."""
        return self._policy_of(topic).upstream_topic(topic)

    def is_heartbeats(self, topic: str) -> bool:
        """Whether it is some cluster's `heartbeats`, after any hops (isHeartbeatsTopic)."""
        while (upstream := self._default.upstream_topic(topic)) is not None:
            topic = upstream
        return topic == HEARTBEATS

    def heartbeats_regex(self) -> str:
        """Regex that fully matches exactly the names for which `is_heartbeats` holds."""
        return self._default.prefixes_regex() + HEARTBEATS

    def is_cycle(self, topic: str, target: str) -> bool:
        """Whether the topic was on the target, so that mirroring it would be a cycle (isCycle)."""
        seen = {topic}  # a user's policy may return to an earlier name
        while (source := self.source_of(topic)) is not None:
            if source == target:
                return True
            upstream = self.upstream_topic(topic)
            if upstream is None or upstream in seen:
                return False
            seen.add(upstream)
            topic = upstream
        return False

    def cycle_regex(self, target: str) -> str | None:
        """Regex that fully matches only names for which `is_cycle` holds; None for no name at all.

        Under our own policies it matches exactly those. A user's class has no regex for cycles:
        then more topics are landed than mirrored.
        """
        cycle = self._default.cycle_regex(target)
        if cycle is None or self.policy == self._default:
            return cycle
        return cycle.removesuffix(".*") + self.heartbeats_regex()

    def is_internal(self, topic: str) -> bool:
        """Whether a topic is Kafka's or MirrorMaker 2's own (4.1.1's rule, KIP-1074)."""
        separator = self.internal_separator
        return (
            topic.startswith(("__", "."))
            or (topic.startswith("mm2") and topic.endswith(f"{separator}internal"))
            or topic.endswith(f"{separator}checkpoints{separator}internal")
        )

    def internal_regex(self) -> str:
        """Regex that fully matches exactly the names for which `is_internal` holds."""
        sep = escape(self.internal_separator)
        return rf"(?:__|\.).*|(?=mm2).*{sep}internal|.*{sep}checkpoints{sep}internal"

    @cached_property
    def _default(self) -> DefaultPolicy:
        return DefaultPolicy(self.separator, self.aliases)

    def _policy_of(self, topic: str) -> ReplicationPolicy:
        return self._default if self.is_heartbeats(topic) else self.policy
