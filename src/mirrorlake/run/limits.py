"""The largest record that topics of a flow take on both clusters: for `mirrorlake.checks.sizes`."""

import time
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

from mirrorlake.checks.problem import Problem
from mirrorlake.checks.sizes import SizeLimit, size_problems
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import broker_config, describe_topic_configs
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import TopicConfigs
from mirrorlake.produce.codecs import named_codec
from mirrorlake.produce.spec import PRODUCER_SETTINGS
from mirrorlake.run.flow_spec import producer_settings

#: Record size in bytes from which the brokers' request limit, 100 MiB by default, may matter.
_NEAR = 50_000_000
#: How often refused records are tried if the target does not report the topic's configs, s.
UNREPORTED_SECONDS = 600.0
_OF_TOPIC, _OF_BROKER = "max.message.bytes", "message.max.bytes"


def limit_problems(
    connections: Connections,
    flow: ResolvedFlow,
    plan: Mapping[str, Any],
    at_source: Mapping[str, TopicConfigs],
) -> list[Problem]:
    """Problems about record sizes, before the first record of a flow. `plan` is its document in
    that of `run.plan.make_plan`, with its topics and their configs to be; `at_source` are the
    topics' configs at the source. One more says of which topics they are not known. Raises
    ClusterUnreachable."""
    topics = [topic for topic in plan["topics"] if topic["action"] != "refuse"]
    if not topics:
        return []
    given = producer_settings(flow, connections.client(flow.target, "producer"))
    settings = {**PRODUCER_SETTINGS, **given}
    target = connections.admin(flow.target)
    limits = list(_limits(target, topics, plan["configs"], at_source))
    problems = list(
        size_problems(
            flow.name,
            (flow.source, flow.target),
            limits,
            batch_bytes=int(settings["batch.size"]),
            message_bytes=int(settings["message.max.bytes"]),
            request_bytes=_request_bytes(connections, flow, limits),
            codec=named_codec(given),
        )
    )
    known = {limit.topic for limit in limits}
    unknown = sorted(topic["topic"] for topic in topics if topic["topic"] not in known)
    return [*problems, _unreported(flow, unknown, at_source)] if unknown else problems


def _unreported(
    flow: ResolvedFlow, topics: Sequence[str], at_source: Mapping[str, TopicConfigs]
) -> Problem:
    """A note that a cluster does not report the record size, or any config, of some topics."""
    told = {name for name, configs in at_source.items() if _value(configs, _OF_TOPIC)}
    clusters = {flow.target if topic in told else flow.source for topic in topics}
    missed = ", and whether it missed deletions in them," if {*topics} - at_source.keys() else ""
    return Problem(
        "unreported-configs",
        "note",
        (flow.name,),
        topics[0],
        sentence=f"whether the target takes the largest records of {len(topics):,} topics of flow "
        f"{flow.name}, such as {topics[0]}{missed or ','} was not checked: cluster "
        f"{' and '.join(sorted(clusters))} does not report {_OF_TOPIC} of them",
        fix="grant DESCRIBE_CONFIGS on the topics, and at the target on the cluster, for topics "
        "that are to be made; where that is granted, the brokers have no such config",
    )


def _value(configs: TopicConfigs, key: str) -> str | None:
    config = configs.get(key)
    return None if config is None else config.value


def limits_of(admin: ClusterAdmin, topics: Collection[str]) -> dict[str, Hashable]:
    """What decides which records a cluster's topics take: their configs, or, if not reported, a
    number that changes every UNREPORTED_SECONDS. Raises ClusterUnreachable."""
    described = describe_topic_configs(admin, topics)
    unreported = int(time.monotonic() // UNREPORTED_SECONDS)
    return {
        **{
            topic: frozenset((key, each.value) for key, each in configs.items())
            for topic, configs in described.configs.items()
        },
        **dict.fromkeys(described.refused, unreported),
    }


def _request_bytes(
    connections: Connections, flow: ResolvedFlow, limits: list[SizeLimit]
) -> int | None:
    """How large a request a target takes; asked only if records come near Kafka's default limit."""
    if all(limit.source < _NEAR for limit in limits):
        return None
    value = broker_config(connections.admin(flow.target), "socket.request.max.bytes")
    return None if value is None else int(value)


def _limits(
    target: ClusterAdmin,
    topics: list[dict[str, Any]],
    changes: list[dict[str, Any]],
    at_source: Mapping[str, TopicConfigs],
) -> Iterator[SizeLimit]:
    there = [topic["target_topic"] for topic in topics if topic["action"] != "create"]
    at_target = describe_topic_configs(target, there).configs
    of_brokers = broker_config(target, _OF_BROKER) if len(there) < len(topics) or changes else None
    changed = {
        change["topic"]: change["after"] or of_brokers
        for change in changes
        if change["key"] == _OF_TOPIC and not change["refusal"]
    }
    for topic in topics:
        source = _value(at_source.get(topic["topic"], {}), _OF_TOPIC)
        now = _value(at_target.get(topic["target_topic"], {}), _OF_TOPIC)
        target_limit = changed.get(topic["topic"]) or now
        if topic["action"] == "create":
            target_limit = topic["configs"].get(_OF_TOPIC) or of_brokers
        if source and target_limit:
            codec = at_source[topic["topic"]].get("compression.type")
            known = codec.value if codec is not None and codec.value != "producer" else None
            yield SizeLimit(
                topic["topic"], topic["target_topic"], int(source), int(target_limit), known
            )
