"""Configs of restored topics: those of the source, but none that deletes restored records. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from mirrorlake.control.config_plan import ConfigChange, ConfigPair, ConfigRules, plan_configs
from mirrorlake.kafka.values import ConfigValue, TopicConfigs
from mirrorlake.lake.topic_states import TopicState

#: Configs that name brokers of the source.
_RULES = ConfigRules(
    ("follower\\.replication\\.throttled\\.replicas", "leader\\.replication\\.throttled\\.replicas")
)
RETENTION_MS, RETENTION_BYTES = "retention.ms", "retention.bytes"


@dataclass(frozen=True)
class ConfigsPlanned:
    """What a restore does about configs: changes, also refused, and sentences about what is not set
    on purpose (`kept`), is never restored (`left`), or not compared now (`untaken`)."""

    changes: tuple[ConfigChange, ...]
    kept: tuple[str, ...]
    left: tuple[str, ...]
    untaken: tuple[str, ...] = ()


@dataclass(frozen=True)
class Restored:
    """A restored topic, as described, and its oldest record's time, ms (None: none)."""

    target_topic: str
    configs: TopicConfigs
    factor: int
    oldest_ms: int | None


def plan_restored(
    states: Mapping[str, TopicState], topics: Mapping[str, Restored], now_ms: int
) -> ConfigsPlanned:
    """What to set on restored topics, by source topic, that is not set yet."""
    changes: list[ConfigChange] = []
    kept_off, left = list[str](), list[str]()
    for topic, restored in sorted(topics.items()):
        if topic not in states:
            left.append(f"configs of topic {topic} are not restored: the lake does not know them")
            continue
        own = states[topic].configs
        kept = [
            key
            for key in (RETENTION_MS, RETENTION_BYTES)
            if _deletes(key, own.get(key), restored.oldest_ms, now_ms)
        ]
        kept_off += [
            f"topic {restored.target_topic} keeps {key}=-1, since its cluster would delete "
            f"restored records; it was {own.get(key, 'the default')}: set it when they are not "
            "needed any more"
            for key in kept
        ]
        source = {key: ConfigValue(value, "topic") for key, value in own.items() if key not in kept}
        changes += plan_configs(
            _RULES,
            ConfigPair(topic, restored.target_topic, source, restored.configs, restored.factor),
        )
    return ConfigsPlanned(tuple(changes), tuple(kept_off), tuple(left))


def _deletes(key: str, value: str | None, oldest_ms: int | None, now_ms: int) -> bool:
    """Whether a topic's retention may delete restored records. An unset value is the cluster's."""
    if oldest_ms is None or value == "-1" or (value is None and key == RETENTION_BYTES):
        return False
    return key == RETENTION_BYTES or value is None or oldest_ms < now_ms - int(value)
