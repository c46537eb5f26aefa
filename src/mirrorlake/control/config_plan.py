"""The difference between configs of source topics and those of their mirrors (docs/mm2.md, "Topic
configs", without its rewriting). Pure.

Only what was set on the source *topic* is mirrored. For a key that is not set there, the mirror has
the target's own default (`use_defaults_from: target`), or the source's (`source`). Differences from
MirrorMaker 2, and why:

- Only differences are sent. MirrorMaker 2 sends every key at every interval.
- A value of the whole source cluster (a dynamic default of all brokers) is a default of that
  cluster and not a setting of the topic: `target` does not copy it, `source` does. MirrorMaker 2
  sets it on every target topic.
- A value of single source brokers (their properties file, or a dynamic value of one broker) is
  never copied, as in MirrorMaker 2, because it depends on which broker answers. But the topic
  counts as not having the key, so a removal at the source removes the target's override.
  MirrorMaker 2 keeps the override for ever; the shipped server.properties sets log.retention.hours
  and log.segment.bytes, so there this is the usual case.
- `source` sets a default only where the target's value differs, and only after creation: a default
  that an older target does not know must not prevent the topic's creation.
- `min.insync.replicas` above the factor of the target topic is refused: no producer could write to
  it (strimzi PR 8696).

- A mirror is made to take timestamps of any age: the source has already applied its limits
  (`UNLIMITED`).
- `message.timestamp.type` of a mirror is CreateTime, whatever the source topic has: a mirror keeps
  the timestamps of its records, and with LogAppendTime, which may be the target's default, its
  brokers would overwrite them. LogAppendTime stays, and is reported, only if it was set on the
  mirror itself and the key is excluded.

Keys that the source does not know, excluded, read-only and sensitive ones are never touched.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from mirrorlake.kafka.values import ConfigValue, TopicConfigs
from mirrorlake.lake.changes import Change
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.naming.selection import matches_any

_MIN_INSYNC = "min.insync.replicas"
_TIMES, _KEPT_TIMES = "message.timestamp.type", "CreateTime"
_ANY = str(2**63 - 1)
#: Limits that a mirror is made without where their keys are excluded: it takes every record that
#: the source took, however old or dated ahead. The brokers' default is an hour ahead (KIP-1030).
#: Brokers before KIP-937 have no such limits.
UNLIMITED: Mapping[str, str] = {
    "message.timestamp.before.max.ms": _ANY,
    "message.timestamp.after.max.ms": _ANY,
}
#: Configs of every new mirror, so that its records keep their timestamps.
ALWAYS: Mapping[str, str] = {**UNLIMITED, _TIMES: _KEPT_TIMES}
_REWRITES = (
    "topic {topic} has message.timestamp.type=LogAppendTime set on it, so its brokers write their "
    "own time over the timestamp of each record; set it to CreateTime, or take "
    "message.timestamp.type out of config_properties_exclude"
)


@dataclass(frozen=True)
class ConfigRules:
    """A flow's settings for configs: `config_properties_exclude` and `use_defaults_from`."""

    exclude: tuple[str, ...] = ()
    defaults_from: Literal["source", "target"] = "target"


@dataclass(frozen=True)
class ConfigPair:
    """A source topic and its mirror, described. `factor` is the mirror's replication factor."""

    topic: str
    target_topic: str
    source: TopicConfigs
    target: TopicConfigs
    factor: int


@dataclass(frozen=True)
class ConfigChange:
    """One key of one target topic that must change. `after` None removes the topic's own value.

    `refusal` says why it will not be sent, empty when it will.
    """

    topic: str
    target_topic: str
    key: str
    before: str | None
    after: str | None
    refusal: str = ""

    def row(self, error: str | None) -> Change:
        """This change as a row of `changes`: done, or refused with an error."""
        after = f"{self.key} (default)" if self.after is None else f"{self.key}={self.after}"
        before = None if self.before is None else f"{self.key}={self.before}"
        return Change(
            "config",
            self.target_topic,
            before,
            after,
            outcome="refused" if error else "done",
            error=error,
        )


def creation_configs(rules: ConfigRules, source: TopicConfigs, factor: int) -> dict[str, str]:
    """Configs of a new mirror: those set on the source topic, filtered as later, and ALWAYS."""
    own = {
        key: value.value
        for key, value in sorted(source.items())
        if value.origin == "topic"
        and value.value is not None
        and _is_mirrored(rules, key, value)
        and not _refusal(key, value.value, factor)
    }
    return {**ALWAYS, **own, _TIMES: _KEPT_TIMES}


def plan_mirror(rules: ConfigRules, pair: ConfigPair) -> list[ConfigChange]:
    """`plan_configs` for a mirror, which keeps the timestamps of its records."""
    others = {key: value for key, value in pair.source.items() if key != _TIMES}
    changes = plan_configs(rules, replace(pair, source=others))
    there = pair.target.get(_TIMES)
    if there is None or there.value == _KEPT_TIMES:
        return changes
    by_hand = there.origin == "topic" and matches_any(rules.exclude, _TIMES)
    refusal = _REWRITES.format(topic=pair.target_topic) if by_hand or there.fixed else ""
    return [
        *changes,
        ConfigChange(
            pair.topic,
            pair.target_topic,
            _TIMES,
            before=there.value,
            after=_KEPT_TIMES,
            refusal=refusal,
        ),
    ]


def plan_configs(rules: ConfigRules, pair: ConfigPair) -> list[ConfigChange]:
    """The changes, by key, that make a topic as the rules want it; none when nothing differs."""
    changes = []
    for key, value in sorted(pair.source.items()):
        there = pair.target.get(key)
        if not _is_mirrored(rules, key, value) or (there is not None and there.fixed):
            continue
        before = None if there is None else there.value
        wanted = _wanted(rules, value)
        if wanted is None:
            if there is not None and there.origin == "topic":
                changes.append(ConfigChange(pair.topic, pair.target_topic, key, before, None))
        elif before != wanted and (there is not None or value.origin == "topic"):
            refusal = _refusal(key, wanted, pair.factor)
            changes.append(
                ConfigChange(
                    pair.topic, pair.target_topic, key, before=before, after=wanted, refusal=refusal
                )
            )
    return changes


def _wanted(rules: ConfigRules, config: ConfigValue) -> str | None:
    """The value that a key of the mirror must have, None for the target's default."""
    if config.origin == "topic" or (rules.defaults_from == "source" and config.origin != "broker"):
        return config.value
    return None


def _is_mirrored(rules: ConfigRules, key: str, config: ConfigValue) -> bool:
    return not config.fixed and not matches_any(rules.exclude, key)


def _refusal(key: str, value: str, factor: int) -> str:
    if key == _MIN_INSYNC and value.isdecimal() and int(value) > factor:
        return (
            f"{_MIN_INSYNC}={value} is more than the {factor} replicas of the target topic, so "
            "that no producer could write to it; raise the topic's factor, or exclude the key "
            "with config_properties_exclude"
        )
    return ""


def configs_by_state(rules: ConfigRules, state: TopicState, factor: int) -> dict[str, str]:
    """Configs of a new mirror, by the same rules as if the source had just reported `state`."""
    return creation_configs(
        rules, {key: ConfigValue(value, "topic") for key, value in state.configs.items()}, factor
    )
