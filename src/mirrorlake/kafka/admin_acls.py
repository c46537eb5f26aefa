"""ACLs on topics: describe, create and delete them (KIP-140, KIP-290)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_configs import answer_of, error_text, refusal_of
from mirrorlake.kafka.admin_connection import ANSWER_SECONDS
from mirrorlake.kafka.chunks import chunks
from mirrorlake.kafka.controller import ask_controller
from mirrorlake.kafka.values import Acl

#: ACLs per request: a KRaft controller accepts at most 10,000 records at a time.
ACLS_PER_REQUEST = 1000


@dataclass(frozen=True)
class NoAcls:
    """A cluster that reports no ACLs: it has no authorizer (`disabled`), or does not let us ask."""

    disabled: bool
    reason: str


def describe_topic_acls(admin: ClusterAdmin) -> frozenset[Acl] | NoAcls:
    """All ACLs on topics, in one request if there are any. Raises ClusterUnreachable.

    confluent-kafka 2.16.1 returns an empty list if the broker answered with an error. To take that
    for "no ACLs" would delete every right that a flow made. So an empty list counts only if the
    broker says that we may ask and that it has an authorizer, and the list is then still empty.
    """
    return _describe(admin) or _why_none(admin) or _describe(admin)


def _describe(admin: ClusterAdmin) -> frozenset[Acl]:
    everything = AclBindingFilter(
        ResourceType.TOPIC,
        name=None,
        resource_pattern_type=ResourcePatternType.ANY,
        principal=None,
        host=None,
        operation=AclOperation.ANY,
        permission_type=AclPermissionType.ANY,
    )
    bindings = _answer(
        admin, lambda seconds: admin.client.describe_acls(everything, request_timeout=seconds)
    )
    return frozenset(_acl(binding) for binding in bindings)


def _why_none(admin: ClusterAdmin) -> NoAcls | None:
    """Why a cluster would report no ACLs; None if it would report them."""
    cluster = _answer(
        admin,
        lambda seconds: admin.client.describe_cluster(
            include_authorized_operations=True, request_timeout=seconds
        ),
    )
    if AclOperation.DESCRIBE not in (cluster.authorized_operations or ()):
        return NoAcls(False, "DESCRIBE on the cluster is not allowed")
    broker = ConfigResource(ResourceType.BROKER, str(cluster.nodes[0].id))
    future = admin.client.describe_configs([broker], request_timeout=ANSWER_SECONDS)[broker]
    if refusal_of(admin, future) is not None:
        return None  # a refusal, so there is an authorizer
    entry = future.result().get("authorizer.class.name")
    return NoAcls(True, "no authorizer") if entry is not None and not entry.value else None


def _answer(admin: ClusterAdmin, ask: Callable[[float], Any]) -> Any:
    """The answer to a question of the controller's. Raises ClusterUnreachable."""
    asked = ask_controller(admin.client, lambda seconds: {None: ask(seconds)})
    return answer_of(admin, asked[None])


def create_acls(admin: ClusterAdmin, acls: Sequence[Acl]) -> dict[Acl, str | None]:
    """Make ACLs; returns the answer to each, None for done. Raises ClusterUnreachable."""
    return _send(admin, acls, AclBinding, admin.client.create_acls)


def delete_acls(admin: ClusterAdmin, acls: Sequence[Acl]) -> dict[Acl, str | None]:
    """Delete just these ACLs; returns each answer, None for done. Raises ClusterUnreachable."""
    return _send(admin, acls, AclBindingFilter, admin.client.delete_acls)


def _send(
    admin: ClusterAdmin,
    acls: Sequence[Acl],
    kind: Callable[..., Any],
    call: Callable[..., Mapping[Any, object]],
) -> dict[Acl, str | None]:
    """Put ACLs into requests of one kind, and gather the answer of the target to each."""
    answers: dict[Acl, str | None] = {}
    for chunk in chunks(acls, ACLS_PER_REQUEST):
        asked = {kind(ResourceType.TOPIC, *_arguments(acl)): acl for acl in chunk}
        futures = call(list(asked), request_timeout=ANSWER_SECONDS)
        answers |= {asked[key]: _refusal_text(admin, future) for key, future in futures.items()}
    return answers


def _refusal_text(admin: ClusterAdmin, future: object) -> str | None:
    error = refusal_of(admin, future)
    if error is None:
        return None
    # The broker's own text for this one is a dump of the request.
    denied = error.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    return f"ALTER on cluster {admin.alias} is not allowed" if denied else error_text(error)


def _arguments(acl: Acl) -> Iterable[object]:
    return (
        acl.name,
        ResourcePatternType[acl.pattern],
        acl.principal,
        acl.host,
        AclOperation[acl.operation],
        AclPermissionType[acl.permission],
    )


def _acl(binding: AclBinding) -> Acl:
    return Acl(
        binding.resource_pattern_type.name,
        binding.name,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation.name,
        permission=binding.permission_type.name,
    )
