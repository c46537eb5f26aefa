"""Configs of topics, described and altered for many topics in few requests (KIP-133, KIP-339)."""

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from mirrorlake.errors import ClusterUnreachable
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.chunks import chunks
from mirrorlake.kafka.refusals import is_answer
from mirrorlake.kafka.values import ConfigValue, Origin, TopicConfigs
from mirrorlake.native.describer import IS_DEFAULT, IS_FIXED, NO_VALUE, TEXT

#: Topics per request: an answer has some 35 keys per topic, and so stays at about a megabyte.
TOPICS_PER_REQUEST = 250
#: How many different answers about a topic, and about a key, are cached.
_KEPT = 4_096
_ORIGINS: Mapping[int, Origin] = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.value: "topic",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value: "cluster",
    ConfigSource.DYNAMIC_BROKER_CONFIG.value: "broker",
    ConfigSource.STATIC_BROKER_CONFIG.value: "broker",
    ConfigSource.DEFAULT_CONFIG.value: "default",
}


class ConfigEdit(Hashable, Protocol):
    """One key of one topic that is to be changed. `after` None removes the topic's own value."""

    @property
    def target_topic(self) -> str:
        """The topic."""

    @property
    def key(self) -> str:
        """The key."""

    @property
    def after(self) -> str | None:
        """The new value."""


Edit = TypeVar("Edit", bound=ConfigEdit)


@dataclass
class Described:
    """Configs by topic, and reasons for topics without reported ones. A gone one is in neither."""

    configs: dict[str, TopicConfigs] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def describe_topic_configs(admin: ClusterAdmin, topics: Iterable[str]) -> Described:
    """Query the configs of topics. Equal configs, of two topics or of one at two times, may be one
    object. Raises ClusterUnreachable."""
    described = Described()
    for chunk in chunks(list(topics), TOPICS_PER_REQUEST):
        for topic, answer in _configs_of(admin, chunk):
            if not isinstance(answer, KafkaError):
                described.configs[topic] = answer
            elif answer.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                described.refused[topic] = error_text(answer)
    return described


def _configs_of(
    admin: ClusterAdmin, topics: Sequence[str]
) -> Iterator[tuple[str, TopicConfigs | KafkaError]]:
    describer = admin.client.of_many("configs", len(topics))
    if describer is not None:
        try:
            answers = describer.configs(topics, ANSWER_SECONDS)
        except KafkaException as raised:
            raise _unreachable(admin, raised.args[0]) from raised
        for topic, answer in answers.items():
            yield topic, answer if isinstance(answer, KafkaError) else _read(answer)
        return
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    for resource, future in _send(admin.client.describe_configs, resources):
        error = refusal_of(admin, future)
        if error is None:
            yield resource.name, {key: _value(entry) for key, entry in future.result().items()}
        else:
            yield resource.name, error


def broker_config(admin: ClusterAdmin, key: str) -> str | None:
    """A config at one of the brokers; None if it is not reported. Raises ClusterUnreachable."""
    brokers = admin.client.list_topics(timeout=ANSWER_SECONDS).brokers
    resources = [ConfigResource(ResourceType.BROKER, str(min(brokers)))] if brokers else []
    for _, future in _send(admin.client.describe_configs, resources):
        if refusal_of(admin, future) is None:
            entry = future.result().get(key)
            return None if entry is None else entry.value
    return None


def alter_topic_configs(admin: ClusterAdmin, changes: Sequence[Edit]) -> dict[Edit, str | None]:
    """Make the changes and nothing else; return the target's answer to each, None for success.

    A topic's changes are sent together; if refused, they are sent again one by one, so that only
    the unacceptable ones are left out. Raises ClusterUnreachable.
    """
    by_topic: dict[str, list[Edit]] = {}
    for change in changes:
        by_topic.setdefault(change.target_topic, []).append(change)
    errors = _alter(admin, by_topic)
    answers = {change: errors[topic] for topic, grouped in by_topic.items() for change in grouped}
    again = [
        grouped
        for topic, grouped in by_topic.items()
        if errors[topic] is not None and len(grouped) > 1
    ]
    for turn in range(max(map(len, again), default=0)):
        single = {
            grouped[turn].target_topic: [grouped[turn]] for grouped in again if turn < len(grouped)
        }
        errors = _alter(admin, single)
        answers.update({change: errors[topic] for topic, (change,) in single.items()})
    return answers


def refusal_of(admin: ClusterAdmin, future: Any) -> KafkaError | None:
    """The cluster's error, None if it complied. Raises ClusterUnreachable without an answer."""
    try:
        future.result()
    except KafkaException as raised:
        error: KafkaError = raised.args[0]
        if is_answer(error):
            return error
        raise _unreachable(admin, error) from raised
    return None


def answer_of(admin: ClusterAdmin, future: Any) -> Any:
    """The answer to what a cluster cannot refuse. Raises ClusterUnreachable without one."""
    error = refusal_of(admin, future)
    if error is not None:
        raise _unreachable(admin, error)
    return future.result()


def _unreachable(admin: ClusterAdmin, error: KafkaError) -> ClusterUnreachable:
    return ClusterUnreachable(
        f"cluster {admin.alias} does not answer at {admin.address} ({error_text(error)}); check "
        "that the brokers run",
        alias=admin.alias,
    )


def error_text(error: KafkaError) -> str:
    """A broker's text, without the full stop."""
    return str(error.str()).strip().rstrip(".")


def _alter(
    admin: ClusterAdmin, by_topic: Mapping[str, Sequence[ConfigEdit]]
) -> dict[str, str | None]:
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            topic,
            incremental_configs=[_operation(change) for change in changes],
        )
        for topic, changes in by_topic.items()
    ]
    answers: dict[str, str | None] = {}
    for resource, future in _send(admin.client.incremental_alter_configs, resources):
        error = refusal_of(admin, future)
        answers[resource.name] = None if error is None else error_text(error)
    return answers


def _send(
    call: Callable[..., Mapping[ConfigResource, Any]], resources: Sequence[ConfigResource]
) -> list[Any]:
    """Send a request per chunk, without waiting; returns pairs of a resource and its future."""
    sent: list[Any] = []
    for chunk in chunks(resources, TOPICS_PER_REQUEST):
        sent.extend(call(list(chunk), request_timeout=ANSWER_SECONDS).items())
    return sent


def _operation(change: ConfigEdit) -> ConfigEntry:
    kind = AlterConfigOpType.DELETE if change.after is None else AlterConfigOpType.SET
    return ConfigEntry(change.key, change.after, incremental_operation=kind)


def _value(entry: ConfigEntry) -> ConfigValue:
    source = getattr(entry.source, "value", entry.source)
    fixed = entry.is_read_only or entry.is_sensitive
    return ConfigValue(entry.value, _origin(source, entry.is_default), fixed)


def _origin(source: int, is_default: bool) -> Origin:
    return _ORIGINS.get(source, "default" if is_default else "topic")


@lru_cache(_KEPT)
def _read(answer: bytes) -> TopicConfigs:
    """The configs of one topic, in the form of `Describer.configs`."""
    parts = answer.split(b"\0")
    return {
        sys.intern(first[2:].decode()): _value_of(value.decode(), first[0] - TEXT, first[1] - TEXT)
        for first, value in zip(parts[0::2], parts[1::2], strict=False)
    }


@lru_cache(_KEPT)
def _value_of(value: str, source: int, bits: int) -> ConfigValue:
    origin = _origin(source, bool(bits & IS_DEFAULT))
    return ConfigValue(None if bits & NO_VALUE else value, origin, bool(bits & IS_FIXED))
