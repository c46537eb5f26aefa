"""The states of a cluster's topics, as the lake keeps them: mirrors are made from them while the
source does not answer, and so are restored topics. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mirrorlake.kafka.values import Acl, TopicConfigs


@dataclass(frozen=True)
class TopicState:
    """The state of a topic from a time on: partitions, replication factor, configs that are set on
    the topic itself, Kafka's topic id (None where it was not asked for), and the ACLs that apply to
    it (None where the cluster does not report them)."""

    partitions: int
    factor: int
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)
    topic_id: str | None = None
    acls: tuple[Acl, ...] | None = None


def own_configs(configs: TopicConfigs) -> dict[str, str]:
    """The configs set on a topic itself, as its cluster reports; none read-only or sensitive."""
    return {
        key: each.value
        for key, each in sorted(configs.items())
        if each.origin == "topic" and each.value is not None and not each.fixed
    }


def applying_acls(topics: Iterable[str], acls: Iterable[Acl]) -> dict[str, tuple[Acl, ...]]:
    """The ACLs that apply to each topic, in order: on its name, on a prefix of it, on all topics.

    They stay as their cluster has them: an ACL on a prefix is made again once, on the prefix.
    """
    literal: dict[str, list[Acl]] = {}
    wide: dict[str, list[Acl]] = {}
    for acl in acls:
        if acl.prefix is None:
            literal.setdefault(acl.name, []).append(acl)
        else:
            wide.setdefault(acl.prefix, []).append(acl)
    lengths = sorted({len(prefix) for prefix in wide})
    return {
        topic: tuple(
            sorted(
                [
                    *literal.get(topic, ()),
                    *(acl for length in lengths for acl in _below(wide, topic, length)),
                ]
            )
        )
        for topic in topics
    }


def _below(wide: Mapping[str, list[Acl]], topic: str, length: int) -> list[Acl]:
    """The ACLs on the prefix of a topic that has this length."""
    return wide.get(topic[:length], []) if length <= len(topic) else []
