"""How topics of a cluster are, as the lake keeps it: mirrors are made by it while the source does not answer. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirrorlake.kafka.values import TopicConfigs


@dataclass(frozen=True)
class TopicState:
    """How a topic is from a time on: partitions, replication factor, what is set on the topic itself, Kafka's id of it
    (None where nobody asked)."""

    partitions: int
    factor: int
    configs: Mapping[str, str] = field(default_factory=dict, hash=False)
    topic_id: str | None = None


def own_configs(found: TopicConfigs) -> dict[str, str]:
    """What is set on a topic itself, by what its cluster reports; never what is read-only or sensitive."""
    return {
        key: each.value
        for key, each in sorted(found.items())
        if each.origin == "topic" and each.value is not None and not each.fixed
    }
