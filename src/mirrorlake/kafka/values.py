"""What a cluster answers about its topics and their records, as plain values. Pure."""

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Literal

#: Where a value was set: on the topic, at runtime for all brokers, or single ones, or in Kafka.
Origin = Literal["topic", "cluster", "broker", "default"]
#: Errors while a group's coordinator is not known yet, usually of a new cluster or a new group.
COORDINATOR_MOVES = frozenset(
    {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
)


@dataclass(frozen=True)
class TopicInfo:
    """A topic as its cluster describes it; `factor` is that of its first partition.

    `configs` are those to create it with, not filled when a cluster describes its topics.
    `leaderless` are the partitions that no client can read now.
    """

    name: str
    partitions: int
    factor: int
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)
    leaderless: frozenset[int] = frozenset()


@dataclass(frozen=True)
class TopicIdentity:
    """Kafka's id of a topic, and how many partitions it has."""

    topic_id: str
    partitions: int


@dataclass(frozen=True)
class ConfigValue:
    """A key's value as a cluster describes it. `fixed` is true for read-only and sensitive ones."""

    value: str | None
    origin: Origin
    fixed: bool = False


TopicConfigs = Mapping[str, ConfigValue]


#: What an ACL says, apart from its topics: principal, host, operation, permission.
Grant = tuple[str, str, str, str]

_WILDCARD = "*"


@dataclass(frozen=True, order=True)
class Acl:
    """An ACL on topics, in Kafka's words: pattern LITERAL or PREFIXED, permission ALLOW or DENY."""

    pattern: str
    name: str
    principal: str
    host: str
    operation: str
    permission: str

    def text(self) -> str:
        """The ACL as it stands in `changes`: a JSON list, which `parse` reads back."""
        return json.dumps(astuple(self), ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> "Acl":
        """Parse the result of `text`."""
        return cls(*json.loads(text))

    @property
    def prefix(self) -> str | None:
        """The common prefix of the topics that it applies to; None for an ACL on one topic."""
        if self.pattern == "PREFIXED":
            return self.name
        return "" if self.name == _WILDCARD else None

    @property
    def grant(self) -> Grant:
        """What it says, apart from its topics."""
        return self.principal, self.host, self.operation, self.permission

    def on(self, pattern: str, name: str) -> "Acl":
        """The same ACL on other topics."""
        return Acl(pattern, name, *self.grant)


@dataclass(frozen=True)
class Row:
    """The fields of a record that identify it: timestamp in ms, and the epoch of the leader that
    wrote it (None if unknown). Of a record deleted by predicate only the range is known: all up to
    `forgotten_to` (inclusive) were deleted."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    epoch: int | None = None
    forgotten_to: int | None = None

    def same(self, other: "Row | None") -> bool:
        """Whether it is this record, whichever producer wrote it. A forgotten one counts too."""
        if other is not None and not (self.forgotten_to is other.forgotten_to is None):
            return self.offset == other.offset
        return other is not None and (self.offset, self.timestamp, self.key, self.value) == (
            other.offset,
            other.timestamp,
            other.key,
            other.value,
        )
