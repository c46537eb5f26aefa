"""Keeps the ACLs of a flow's target topics as `control.acl_plan` wants them, by difference.

What the flow made is what `changes` says, which is read at each turn, and written before an ACL is
made. So a process that takes over, and the one that runs the opposite flow, know of each ACL whose
it is, whenever its maker died.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from mirrorlake.config.precedence import opposite_name
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_order import allowances, apart, denials
from mirrorlake.control.acl_plan import (
    KIND,
    AclChange,
    AclPlan,
    Mirrors,
    implied_acls,
    owned_acls,
    plan_acls,
)
from mirrorlake.control.acl_removals import removals
from mirrorlake.control.acl_reports import acls_unreported, not_written_out
from mirrorlake.control.repeats import RefusedChanges
from mirrorlake.control.sorted_names import SortedNames
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin_acls import NoAcls, create_acls, delete_acls, describe_topic_acls
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.changes import Change, ChangeLog, PendingChanges
from mirrorlake.mm2.topics import checkpoints_topic

logger = logging.getLogger(__name__)


class _Compared(NamedTuple):
    """What a comparison of both sides gave: what to do, what is ours, and how mirrors are named;
    or, where a cluster reports no ACLs, why not, and what the mirrors have to have, as far as is
    known, although it cannot be made."""

    plan: AclPlan
    owned: Mapping[Acl, str | None]
    mirrors: Mirrors
    unreported: list[Change]
    lacking: Mapping[Acl, str | None] = {}

    @property
    def unknown(self) -> str | None:
        """Why it is not known what there is; None where it is, or where there are no ACLs."""
        return next((row.error for row in self.unreported if row.outcome == "refused"), None)


class AclSync:
    """Topic ACLs of one flow. Every call asks both clusters and raises ClusterUnreachable when one
    is silent."""

    def __init__(
        self,
        flow: ResolvedFlow,
        connections: Connections,
        log: ChangeLog,
        *,
        remote_topic: Callable[[str], str | None],
        mirrored: Callable[[], Collection[str]] = tuple,
        on_read: Callable[[frozenset[Acl]], object] = lambda acls: None,
    ) -> None:
        """Prepare; `remote_topic` gives the target topic of a source topic, None where there cannot
        be one, and `mirrored` the target topics that the flow has produced to. `on_read` is handed
        the ACLs of the source, each time that it reports them."""
        self.flow = flow
        #: What the flow made under another policy; None where no comparison has shown it yet.
        self.left: Mapping[Acl, str | None] | None = None
        #: What the mirrors lack since the target refused it, and its answer, where that was now.
        self.undone: Mapping[Acl, str | None] = {}
        self._selection = flow.selection
        self._naming = flow.naming
        self._named_by = flow.naming.label
        self._has_opposite = opposite_name(flow) in connections.topology.flows
        self._source = connections.admin(flow.source)
        self._target = connections.admin(flow.target)
        self._log = log
        self._remote_topic = remote_topic
        self._mirrored = mirrored
        self._on_read = on_read
        self._refusals = RefusedChanges()
        self._pending = PendingChanges(log, flow.name)
        #: When `sync` compared both sides last, by the monotonic clock.
        self.compared_at = float("-inf")
        self._folded: dict[str, tuple[Sequence[Change], dict[Acl, str | None]]] = {}

    def compare(self) -> AclPlan:
        """What would be done now; changes nothing. Empty where a cluster has no authorizer."""
        return self._compare().plan

    def plan(self) -> list[AclChange]:
        """The changes alone."""
        return self.compare().changes

    def sync(self) -> list[Change]:
        """Change what differs, and nothing else; returns the rows that it wrote to `changes`.

        May be called before the topics are made: their ACLs are then there first. A change that is
        refused stops no other one; it is reported once, and one for each reason is tried again
        after RETRY_REFUSED_SECONDS. `left` is then what the flow made under another policy.
        """
        began = time.monotonic()
        plan, owned, mirrors, unreported, lacking = compared = self._compare()
        self.compared_at = began
        if compared.unknown is None:
            self.left = plan.left
        rows = self._not_reported(
            [*unreported, *(not_written_out(acl, self.flow) for acl in plan.withheld)], plan.changes
        )
        due = self._refusals.due(plan.changes)
        errors: dict[AclChange, str | None] = {
            change: None for change in due if change.action == "forget"
        }
        begun = [change.acl for change in due if change.action == "create"]
        wanted = {change.acl for change in plan.changes if change.action == "create"}
        created = self._create(begun, wanted, owned)
        fresh = {AclChange("create", acl) for acl in created if acl not in owned}
        errors.update({AclChange("create", acl): error for acl, error in created.items()})
        self.undone = {
            **lacking,
            **{acl: created.get(acl) for acl in wanted if created.get(acl, "") is not None},
        }
        stale = [change.acl for change in plan.changes if change.action == "delete"]
        errors.update(
            self._delete(removals(due, self.undone.keys(), mirrors.closed), allowances(stale))
        )
        for change, error in errors.items():
            if error is None:
                self._refusals.accepted(change)
                rows.append(change.row(None, self._named_by))
            elif self._refusals.is_news(change, error) or change in fresh:
                rows.append(change.row(error, self._named_by))
        self._log_and_record(rows)
        return rows

    def make_stated(self, stated: Iterable[Acl], names: Mapping[str, str]) -> None:
        """Make what ACLs of the source, as the lake knows them, mean for mirrors that are made
        while it does not answer; `names` are these by source topic. One ACL a topic, which the next
        `sync` makes fewer. `undone` is then what the target refused. Raises ClusterUnreachable."""
        there = describe_topic_acls(self._target)
        implied = implied_acls(stated, Mirrors(names)).acls
        if isinstance(there, NoAcls):
            self.undone = {} if there.disabled else dict.fromkeys(implied, there.reason)
            return
        lacking = sorted(implied - there)
        created = self._create(lacking, lacking, ())
        self._log_and_record(
            [AclChange("create", acl).row(error, self._named_by) for acl, error in created.items()]
        )
        self.undone = {acl: created.get(acl) for acl in lacking if created.get(acl, "") is not None}

    def _create(
        self, acls: Collection[Acl], wanted: Collection[Acl], owned: Collection[Acl]
    ) -> dict[Acl, str | None]:
        """Make ACLs, those that deny first, and of the others none that one of these would limit
        which is `wanted` and not there now; returns the target's answer to each that was sent. That
        they are the flow's is noted before, as far as they are not `owned`."""
        denied = self._send(denials(acls), owned)
        missing = [acl for acl in denials(wanted) if denied.get(acl, "") is not None]
        return denied | self._send(apart(allowances(acls), missing), owned)

    def _send(self, acls: Sequence[Acl], owned: Collection[Acl]) -> dict[Acl, str | None]:
        fresh = [AclChange("create", acl) for acl in acls if acl not in owned]
        self._log.record(self.flow.name, [change.begun(self._named_by) for change in fresh])
        return create_acls(self._target, acls) if acls else {}

    def settle_left(self, revoke: bool) -> int:
        """Do what an operator decided about the ACLs of another policy: take them away, or leave
        them to others for good; returns how many. Raises ReplicationError when a cluster does not
        say what there is, or the target refuses, with what it did noted all the same."""
        compared = self._compare()
        if compared.unknown is not None:
            raise ReplicationError(f"{compared.unknown}; grant it that, and decide again")
        left = compared.plan.left
        errors = (
            self._delete(list(left), allowances(left))
            if revoke
            else {AclChange("forget", acl): None for acl in left}
        )
        self._log_and_record(
            [change.row(error, left[change.acl]) for change, error in errors.items()]
        )
        refused = [
            f"{change.acl.name}: {error}" for change, error in errors.items() if error is not None
        ]
        if refused:
            raise ReplicationError(
                f"cluster {self.flow.target} did not take away {len(refused)} of {len(left)} ACLs, "
                f"such as {refused[0]}; grant ALTER on the cluster, and decide again"
            )
        return len(left)

    def _delete(self, acls: Sequence[Acl], stale: Iterable[Acl]) -> dict[AclChange, str | None]:
        """Take ACLs away, those that allow first, and of the others none that limits one of the
        `stale` ones which is still there; returns the target's answer to each that was sent."""
        answers = delete_acls(self._target, allowances(acls))
        there = [acl for acl in stale if answers.get(acl, "") is not None]
        answers |= delete_acls(self._target, apart(denials(acls), there))
        return {AclChange("delete", acl): error for acl, error in answers.items()}

    def _not_reported(self, rows: Sequence[Change], changes: Sequence[AclChange]) -> list[Change]:
        """Those rows that were not reported before; what is neither reported nor to be changed any
        more is forgotten."""
        self._refusals.keep({*changes, *(row.resource for row in rows)})
        return [row for row in rows if self._refusals.is_news(row.resource, row.error or "")]

    def _compare(self) -> _Compared:
        # Asked before and after: whatever the opposite flow made is there, or was, in between.
        opposite = self._owned(opposite_name(self.flow)).keys() if self._has_opposite else set()
        source, target = describe_topic_acls(self._source), describe_topic_acls(self._target)
        if not isinstance(source, NoAcls):
            self._on_read(source)
        unreported = [
            acls_unreported(admin, answer, self.flow)
            for admin, answer in ((self._source, source), (self._target, target))
            if isinstance(answer, NoAcls)
        ]
        if isinstance(source, NoAcls) or isinstance(target, NoAcls):
            lacking: Mapping[Acl, str | None] = {}
            if (
                not isinstance(source, NoAcls)
                and isinstance(target, NoAcls)
                and not target.disabled
            ):
                lacking = dict.fromkeys(
                    implied_acls(source, Mirrors(self._names())).acls, target.reason
                )
            return _Compared(AclPlan([], (), {}), {}, Mirrors({}), unreported, lacking)
        if self._has_opposite:
            source -= opposite | self._owned(opposite_name(self.flow)).keys()
        owned = self._owned(self.flow.name)
        mirrors = self._mirrors(owned)
        plan = plan_acls(source, target, owned, mirrors=mirrors, policy=self._named_by)
        return _Compared(plan, owned, mirrors, [])

    def _owned(self, flow: str) -> dict[Acl, str | None]:
        """What a flow made and has not taken away, with the policy of then; read again when
        something was recorded."""
        history = self._log.history(flow, KIND)
        known = self._folded.get(flow)
        if known is None or known[0] is not history:
            known = self._folded[flow] = (history, owned_acls(history))
        return known[1]

    def _mirrors(self, owned: Mapping[Acl, str | None]) -> Mirrors:
        names = self._names()
        ours = {*names.values(), *self._mirrored()}
        strange = SortedNames(topic for topic in self._target.topics() if topic not in ours)

        every = self._naming.target_prefix("")
        checkpoints = checkpoints_topic(self.flow)

        @cache
        def closed(prefix: str) -> bool:
            """Whether nothing but mirrors lies below a prefix of the target, which may have topics
            of its own anywhere.

            Our own topic of checkpoints is none, except to those who have a right on all topics of
            the source: what it holds is in `__consumer_offsets` there.
            """
            below = strange.below(prefix)
            return all(topic == checkpoints and prefix == every for topic in below)

        return Mirrors(
            names,
            self._upstream(owned, names),
            self._naming.target_prefix,
            closed,
        )

    def _names(self) -> dict[str, str]:
        """Target topics by source topic, of all that are selected, whether they are there yet or
        not."""
        names = {
            topic: self._remote_topic(topic)
            for topic in self._source.topics()
            if self._selection.selects(topic)
        }
        return {topic: name for topic, name in names.items() if name is not None}

    def _upstream(
        self, owned: Mapping[Acl, str | None], names: Mapping[str, str]
    ) -> dict[str, str]:
        """Target topics by source topic, of those that have our ACLs and are not selected, or not
        there, any more.

        Only the default policy's names show by themselves that they are its own; other names must
        have been noted so.
        """
        known, upstream = set(names.values()), {}
        default = self._naming.policy_name == "default"
        tells = (self._named_by, None) if default else (self._named_by,)
        for name in {
            acl.name for acl, policy in owned.items() if acl.prefix is None and policy in tells
        } - known:
            topic = self._naming.upstream_topic(name)
            if topic is not None and self._remote_topic(topic) == name:
                upstream[topic] = name
        return upstream

    def _log_and_record(self, rows: list[Change]) -> None:
        for row in rows:
            if row.outcome == "skipped":
                logger.info("%s", row.error)
            elif row.outcome == "refused":
                logger.warning("flow %s: ACL on %s: %s", self.flow.name, row.resource, row.error)
        done = sum(row.outcome == "done" for row in rows)
        if done:
            logger.info(
                "flow %s: made or took away %d ACLs on %s", self.flow.name, done, self.flow.target
            )
        self._pending.record(rows)
