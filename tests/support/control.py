"""Configs and ACLs of real clusters, set and read as any other client would, and the parts of
control to test."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourcePatternType,
    ResourceType,
)

from mirrorlake.config.topology import load_topology
from mirrorlake.control.acl_sync import AclSync
from mirrorlake.control.config_sync import ConfigSync
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.changes import ChangeLog
from mirrorlake.naming.policy import check_topic_name
from mirrorlake.spark.jars import kafka_jars
from mirrorlake.spark.java import find_java
from tests.support.waiting import until

Sync = TypeVar("Sync", ConfigSync, AclSync)
T = TypeVar("T")

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}


def make_sync(
    kind: type[Sync], topology_file: Path, log: ChangeLog, flow: str = "east->west"
) -> Sync:
    """Config or ACL control of one flow of a topology file."""
    topology = load_topology(topology_file)
    resolved = topology.flow(flow)

    def remote_topic(topic: str) -> str | None:
        name = resolved.target_topic(topic)
        return None if check_topic_name(name) else name

    return kind(resolved, Connections(topology), log, remote_topic=remote_topic)


def own_configs(bootstrap: str, topic: str) -> dict[str, str]:
    """What is set on a topic itself."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    answer = admin.describe_configs([resource])[resource].result(20)
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {key: entry.value for key, entry in answer.items() if entry.source == own}


def set_configs(bootstrap: str, topic: str, configs: Mapping[str, str | None]) -> None:
    """Set values on a topic, None takes one away; returns when the brokers show it."""
    _alter(bootstrap, ConfigResource(ResourceType.TOPIC, topic), configs)
    wanted = {**own_configs(bootstrap, topic), **configs}
    until(lambda: {**dict.fromkeys(wanted), **own_configs(bootstrap, topic)}, gives=wanted)


def set_cluster_default(bootstrap: str, key: str, value: str | None) -> None:
    """Set a dynamic default of all brokers, None takes it away; by Kafka's own tool, since
    librdkafka cannot."""
    change = ["--delete-config", key] if value is None else ["--add-config", f"{key}={value}"]
    scope = ["--entity-type", "brokers", "--entity-default"]
    java = [str(find_java()), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]  # it lives a second
    tool = ["-cp", str(kafka_jars()[0].parent / "*"), "kafka.admin.ConfigCommand"]
    command = [*java, *tool, "--bootstrap-server", bootstrap, "--alter", *scope, *change]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


def _alter(bootstrap: str, resource: ConfigResource, configs: Mapping[str, str | None]) -> None:
    for key, value in configs.items():
        kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=kind))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(20)


def add_acls(bootstrap: str, *acls: Acl) -> None:
    """Make ACLs on topics; returns when the broker shows them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_acls([AclBinding(*_fields(acl)) for acl in acls]).values():
        future.result(20)
    until(lambda: set(acls) <= acls_of(bootstrap))


def remove_acls(bootstrap: str, *acls: Acl) -> None:
    """Take ACLs away; returns when the broker shows it."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_acls([AclBindingFilter(*_fields(acl)) for acl in acls]).values():
        assert len(future.result(20)) == 1
    until(lambda: not set(acls) & acls_of(bootstrap))


def acls_of(bootstrap: str, text: str = "") -> set[Acl]:
    """ACLs on topics whose names hold a text."""
    every = AclBindingFilter(
        ResourceType.TOPIC,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    answer = admin.describe_acls(every).result(20)
    return {
        Acl(
            each.resource_pattern_type.name,
            each.name,
            principal=each.principal,
            host=each.host,
            operation=each.operation.name,
            permission=each.permission_type.name,
        )
        for each in answer
        if text in each.name
    }


def _fields(acl: Acl) -> tuple[object, ...]:
    return (
        ResourceType.TOPIC,
        acl.name,
        ResourcePatternType[acl.pattern],
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )
