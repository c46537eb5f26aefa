"""How large a record may be in each topic of a flow, as both clusters say it: for `mirrorlake.checks.sizes`."""

from collections.abc import Iterator, Mapping
from typing import Any

from mirrorlake.checks.problem import Problem
from mirrorlake.checks.sizes import SizeLimit, size_problems
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.kafka.admin_configs import broker_config, describe_topic_configs
from mirrorlake.kafka.connections import Connections
from mirrorlake.produce.writer import PRODUCER_SETTINGS

#: Bytes of a record from which on the brokers' limit of a request, 100 MiB by default, may matter.
_NEAR = 50_000_000
_OF_TOPIC, _OF_BROKER = "max.message.bytes", "message.max.bytes"


def limits_told(connections: Connections, flow: ResolvedFlow, plan: Mapping[str, Any]) -> list[Problem]:
    """What is worth knowing about sizes before the first record of a flow. `plan` is its document in that of
    `run.plan.make_plan`: what would become of its topics and their configs. Raises ClusterUnreachable."""
    topics = [topic for topic in plan["topics"] if topic["action"] != "refuse"]
    if not topics:
        return []
    settings = {**PRODUCER_SETTINGS, **connections.client(flow.target, "producer")}
    sizes = int(settings["batch.size"]), int(settings["message.max.bytes"])
    limits = list(_limits(connections, flow, topics, plan["configs"]))
    requests = _request_bytes(connections, flow, limits)
    return list(size_problems(flow.name, (flow.source, flow.target), limits, *sizes, requests))


def _request_bytes(connections: Connections, flow: ResolvedFlow, limits: list[SizeLimit]) -> int | None:
    """How large a request the target's brokers take, asked only where records come near to what Kafka's default is."""
    if all(limit.source < _NEAR for limit in limits):
        return None
    found = broker_config(connections.admin(flow.target), "socket.request.max.bytes")
    return None if found is None else int(found)


def _limits(
    connections: Connections, flow: ResolvedFlow, topics: list[dict[str, Any]], changes: list[dict[str, Any]]
) -> Iterator[SizeLimit]:
    target = connections.admin(flow.target)
    at_source = describe_topic_configs(connections.admin(flow.source), [topic["topic"] for topic in topics]).configs
    there = [topic["target_topic"] for topic in topics if topic["action"] != "create"]
    at_target = describe_topic_configs(target, there).configs
    of_brokers = broker_config(target, _OF_BROKER) if len(there) < len(topics) or changes else None
    changed = {
        item["topic"]: item["after"] or of_brokers
        for item in changes
        if item["key"] == _OF_TOPIC and not item["refusal"]
    }
    for topic in topics:
        source = at_source.get(topic["topic"], {}).get(_OF_TOPIC)
        now = at_target.get(topic["target_topic"], {}).get(_OF_TOPIC)
        found = changed.get(topic["topic"]) or (now.value if now is not None else None)
        if topic["action"] == "create":
            found = topic["configs"].get(_OF_TOPIC) or of_brokers
        if source is not None and source.value and found:
            yield SizeLimit(topic["topic"], topic["target_topic"], int(source.value), int(found))
