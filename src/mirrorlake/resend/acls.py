"""ACLs of restored topics: those that applied at the source, by the lake, and no wider."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mirrorlake.control.acl_plan import AclChange, Mirrors, implied_acls
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_acls import NoAcls, create_acls, describe_topic_acls
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.changes import Change
from mirrorlake.lake.topic_states import TopicState
from mirrorlake.naming.naming import Naming

KIND = "acl"


@dataclass(frozen=True)
class AclsPlanned:
    """What a restore does about ACLs: those it makes, and sentences about others: `left` is what no
    call restores, `untaken` what the target does not take now."""

    create: tuple[Acl, ...] = ()
    left: tuple[str, ...] = ()
    untaken: tuple[str, ...] = ()


def plan_restored_acls(
    states: Mapping[str, TopicState], names: Mapping[str, str], naming: Naming, admin: ClusterAdmin
) -> AclsPlanned:
    """What to make; queries the target, and changes nothing. Raises ClusterUnreachable.

    An ACL on a prefix stays one if only restored topics lie below it at the target; otherwise it is
    written out for each of them. The same holds for an ACL on all topics. `states` are of the
    restored topics at the source, and `names` are their names at the target, by `naming`.
    """
    left = [
        f"ACLs of topic {topic} are not restored: cluster {naming.source} did not report them"
        for topic in sorted(names)
        if topic not in states or states[topic].acls is None
    ]
    stated = {acl for topic in names.keys() & states.keys() for acl in states[topic].acls or ()}
    if not stated:
        return AclsPlanned(left=tuple(left))
    there = describe_topic_acls(admin)
    if isinstance(there, NoAcls):
        untaken = f"cluster {admin.alias} takes no ACLs: {there.reason}"
        return AclsPlanned(left=tuple(left), untaken=(untaken,))
    strange = admin.topics().keys() - set(names.values())
    mirrors = Mirrors(
        names,
        prefix=naming.target_prefix,
        closed=lambda prefix: not any(topic.startswith(prefix) for topic in strange),
    )
    implied = implied_acls(stated, mirrors, writable=True)
    left += [
        f"{acl.permission} {acl.operation} for {acl.principal} on {acl.pattern} {acl.name} is not "
        "restored: it would have to be written out for too many topics; grant it by hand"
        for acl in implied.withheld
    ]
    return AclsPlanned(tuple(sorted(implied.acls - there)), tuple(left))


def make_acls(admin: ClusterAdmin, acls: Iterable[Acl]) -> list[Change]:
    """Make ACLs; returns their rows of `changes`, refused ones too. Raises ClusterUnreachable."""
    errors = create_acls(admin, list(acls))
    return [AclChange("create", acl).row(error) for acl, error in errors.items()]
