"""Messages to operators about ACLs that a flow does not keep alike: those on mirrors named by
another policy, those that it would have to write out, and those that a cluster does not report."""

from collections.abc import Mapping

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_plan import KIND, MAX_WRITTEN_OUT
from mirrorlake.errors import ReplicationError, some_of
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_acls import NoAcls
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.changes import Change

#: Incident: ACLs on mirrors that the flow named by another policy await an operator's decision.
LEFT = "acls_left"
#: How many of their names the message has.
NAMED = 8


def left_acls(flow: str, left: Mapping[Acl, str | None]) -> ReplicationError:
    """The message about ACLs that a flow made on mirrors which it named by another policy."""
    names = sorted({acl.name for acl in left})
    policies = sorted({policy or "an earlier one" for policy in left.values()})
    return ReplicationError(
        f"flow {flow} leaves alone {len(left)} ACLs that it made under another policy "
        f"({', '.join(policies)}), on {some_of(names, NAMED)}; decide with `mirrorlake resolve "
        f"--flow '{flow}' --kind {LEFT}`"
    )


def not_written_out(acl: Acl, flow: ResolvedFlow) -> Change:
    """The row for an ACL on a source prefix that would be written out for too many topics."""
    what = f"{acl.permission} {acl.operation} for {acl.principal} on {acl.pattern} {acl.name}"
    error = (
        f"{what} of cluster {flow.source} is not mirrored: flow {flow.name} would "
        f"have to write it out for each topic, and writes out at most {MAX_WRITTEN_OUT:,} "
        "ACLs; let its policy be default, which keeps prefixes, or grant it at the target by "
        "hand"
    )
    return Change(KIND, f"{what} from {acl.host}", outcome="refused", error=error)


def acls_unreported(admin: ClusterAdmin, answer: NoAcls, flow: ResolvedFlow) -> Change:
    """The row for a cluster that has no authorizer, or does not report its ACLs."""
    if answer.disabled:
        error = f"cluster {admin.alias} has no authorizer, so flow {flow.name} mirrors no ACLs"
        return Change(KIND, f"cluster {admin.alias}", outcome="skipped", error=error)
    error = f"cluster {admin.alias} does not report its ACLs to flow {flow.name}: {answer.reason}"
    return Change(KIND, f"cluster {admin.alias}", outcome="refused", error=error)


def acls_wait(name: str, topic: str, flow: ResolvedFlow) -> Change:
    """The row for a mirror on which nothing new is allowed for now."""
    error = (
        f"cluster {flow.source} does not say whether topic {topic} is the one that was mirrored: "
        "nothing new is allowed on its mirror until it does"
    )
    return Change(KIND, name, outcome="refused", error=error)
