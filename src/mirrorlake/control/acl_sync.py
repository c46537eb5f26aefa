"""Keeps the ACLs of a flow's target topics as `control.acl_plan` wants them, by difference.

`changes` says which ACLs the flow made: read at each turn, and written before one is made. So a
process that takes over, or runs the opposite flow, knows each ACL's owner, whenever its maker died.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import cache
from typing import NamedTuple

from mirrorlake.config.precedence import opposite_name
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_order import allowances, apart, denials, on_topics, removals
from mirrorlake.control.acl_plan import (
    KIND,
    AclChange,
    AclPlan,
    Mirrors,
    implied_acls,
    owned_acls,
    plan_acls,
)
from mirrorlake.control.acl_reports import acls_unreported, acls_wait, not_written_out
from mirrorlake.control.repeats import RefusedChanges
from mirrorlake.control.sorted_names import SortedNames
from mirrorlake.errors import ReplicationError
from mirrorlake.kafka.admin_acls import NoAcls, create_acls, delete_acls, describe_topic_acls
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.changes import Change, ChangeLog, PendingChanges
from mirrorlake.lake.topic_states import applying_acls
from mirrorlake.landing.generations import SAME, SinceLanded
from mirrorlake.mm2.topics import checkpoints_topic

logger = logging.getLogger(__name__)

_WAITS = "it would apply to the mirror of a topic that waits for a decision"
_UNSAID = "it would apply to the mirror of a topic that may have been made again"


class _Compared(NamedTuple):
    """What a comparison found: what to do, the flow's ACLs, how mirrors are named. Where a cluster
    reports no ACLs: why not, and the ACLs that mirrors need, as far as known, but cannot get.
    `held` are allowances that are not made yet, and why; `unsaid` has a row for each mirror whose
    allowances wait for an answer of the source."""

    plan: AclPlan
    owned: Mapping[Acl, str | None]
    mirrors: Mirrors
    unreported: list[Change]
    lacking: Mapping[Acl, str | None] = {}
    held: Mapping[Acl, str | None] = {}
    unsaid: Sequence[Change] = ()

    @property
    def unknown(self) -> str | None:
        """Why the ACLs are unknown; None if they are known, or the cluster has no authorizer."""
        return next((row.error for row in self.unreported if row.outcome == "refused"), None)


class AclSync:
    """Topic ACLs of a flow. Each call asks both clusters. Raises ClusterUnreachable."""

    def __init__(
        self,
        flow: ResolvedFlow,
        connections: Connections,
        log: ChangeLog,
        *,
        remote_topic: Callable[[str], str | None],
        mirrored: Callable[[], Collection[str]] = tuple,
        on_read: Callable[[frozenset[Acl]], object] = lambda acls: None,
        waiting: Callable[[], Set[str]] = frozenset,
        since_landed: Callable[[Set[str]], SinceLanded] = lambda topics: SAME,
    ) -> None:
        """Prepare. `remote_topic` gives the target topic of a source topic, None if it cannot have
        one; `mirrored` gives the target topics that the flow has produced to. `on_read` gets the
        source's ACLs each time that it reports them. `waiting` gives the source topics that wait
        for a decision, and `since_landed` those of some that are about to, or may be: nothing new
        is allowed on their mirrors, whose records are not of the topic that the source's ACLs are
        about now."""
        self.flow = flow
        #: ACLs that the flow made under another policy; None until a comparison has shown them.
        self.left: Mapping[Acl, str | None] | None = None
        #: ACLs that mirrors lack since the target refused them, with its answer if it was now.
        self.undone: Mapping[Acl, str | None] = {}
        #: Why ACLs are not as the source's, for each that `sync` could not make or remove, and for
        #: what is not reported or not written out.
        self.refused: Sequence[str] = ()
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
        self._waiting, self._since_landed = waiting, since_landed
        self._refusals = RefusedChanges()
        self._pending = PendingChanges(log, flow.name)
        #: When `sync` compared both sides last, by the monotonic clock.
        self.compared_at = float("-inf")
        self._folded: dict[str, tuple[Sequence[Change], dict[Acl, str | None]]] = {}

    def compare(self) -> AclPlan:
        """What `sync` would do now; changes nothing. Empty if a cluster has no authorizer."""
        return self._compare().plan

    def plan(self) -> list[AclChange]:
        """The changes alone."""
        return self.compare().changes

    def sync(self) -> list[Change]:
        """Change what differs, and nothing else; return the rows written to `changes`.

        May be called before the topics are made, so that their ACLs exist first. A refused change
        does not stop the others. It is reported once; one refused change for each reason is tried
        again after RETRY_REFUSED_SECONDS. Sets `left` to what the flow made under another policy.
        """
        began = time.monotonic()
        plan, owned, mirrors, unreported, lacking, held, unsaid = compared = self._compare()
        if compared.unknown is None:
            self.left = plan.left
        withheld = [not_written_out(acl, self.flow) for acl in plan.withheld]
        uncopied = [*unreported, *unsaid, *withheld]
        rows = self._not_reported(uncopied, plan.changes)
        due = self._refusals.due(plan.changes)
        errors: dict[AclChange, str | None] = {
            change: None for change in due if change.action == "forget"
        }
        begun = [change.acl for change in due if change.action == "create"]
        wanted = {change.acl for change in plan.changes if change.action == "create"}
        created = self._create(begun, wanted, owned)
        fresh = {AclChange("create", acl) for acl in created if acl not in owned}
        errors.update({AclChange("create", acl): error for acl, error in created.items()})
        unmade = {acl: created.get(acl) for acl in wanted if created.get(acl, "") is not None}
        self.undone = {**lacking, **held, **unmade}
        stale = [change.acl for change in plan.changes if change.action == "delete"]
        errors.update(self._delete(removals(due, unmade.keys(), mirrors.closed), allowances(stale)))
        for change, error in errors.items():
            if error is None:
                self._refusals.accepted(change)
                rows.append(change.row(None, self._named_by))
            elif self._refusals.is_news(change, error) or change in fresh:
                rows.append(change.row(error, self._named_by))
        done = {change for change, error in errors.items() if error is None}
        left = [change for change in plan.changes if change not in done]
        refused = [row.resource for row in uncopied if row.outcome == "refused"]
        self.refused = self._refusals.standing([*left, *refused])
        self._log_and_record(rows)
        self.compared_at = began  # one that failed in between is done anew
        return rows

    def make_stated(self, stated: Iterable[Acl], names: Mapping[str, str]) -> bool:
        """While the source is silent, make the ACLs that its `stated` ones, from the lake, imply
        for new mirrors; `names` are these by source topic. Makes one ACL per topic; the next `sync`
        reduces them. Sets `undone` to what the target refused. Returns whether the target has ACLs
        at all. Raises ClusterUnreachable."""
        there = describe_topic_acls(self._target)
        implied = implied_acls(stated, Mirrors(names)).acls
        if isinstance(there, NoAcls):
            self.undone = {} if there.disabled else dict.fromkeys(implied, there.reason)
            return not there.disabled
        lacking = sorted(implied - there)
        created = self._create(lacking, lacking, ())
        self._log_and_record(
            [AclChange("create", acl).row(error, self._named_by) for acl, error in created.items()]
        )
        self.undone = {acl: created.get(acl) for acl in lacking if created.get(acl, "") is not None}
        return True

    def _create(
        self, acls: Collection[Acl], wanted: Collection[Acl], owned: Collection[Acl]
    ) -> dict[Acl, str | None]:
        """Make ACLs, denials first; skip allowances that a `wanted` denial would limit if that one
        is not there now. Returns the target's answer for each ACL sent. ACLs that are not `owned`
        yet are noted as the flow's before they are sent."""
        denied = self._send(denials(acls), owned)
        missing = [acl for acl in denials(wanted) if denied.get(acl, "") is not None]
        return denied | self._send(apart(allowances(acls), missing), owned)

    def _send(self, acls: Sequence[Acl], owned: Collection[Acl]) -> dict[Acl, str | None]:
        fresh = [AclChange("create", acl) for acl in acls if acl not in owned]
        self._log.record(self.flow.name, [change.begun(self._named_by) for change in fresh])
        return create_acls(self._target, acls) if acls else {}

    def settle_left(self, revoke: bool) -> int:
        """Carry out an operator's decision about the ACLs of another policy: delete them, or give
        them up for good. Returns how many. Raises ReplicationError when a cluster does not report
        its ACLs, or the target refuses; what was done is noted all the same."""
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
        """Delete ACLs, allowances first; skip denials that limit a `stale` allowance which is still
        there. Returns the target's answer for each ACL sent."""
        answers = delete_acls(self._target, allowances(acls))
        there = [acl for acl in stale if answers.get(acl, "") is not None]
        answers |= delete_acls(self._target, apart(denials(acls), there))
        return {AclChange("delete", acl): error for acl, error in answers.items()}

    def _not_reported(self, rows: Sequence[Change], changes: Sequence[AclChange]) -> list[Change]:
        """The rows that were not reported before. Forgets refusals that are over."""
        self._refusals.keep({*changes, *(row.resource for row in rows)})
        return [row for row in rows if self._refusals.is_news(row.resource, row.error or "")]

    def _compare(self) -> _Compared:
        # Read before and after: an ACL that the opposite flow made or deleted meanwhile is in one.
        opposite = self._owned(opposite_name(self.flow)).keys() if self._has_opposite else set()
        source = describe_topic_acls(self._source)
        self._note(source)  # now: the target may not answer
        target = describe_topic_acls(self._target)
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
        held, unsaid = self._held(plan.changes, mirrors.names)
        changes = [change for change in plan.changes if change.acl not in held]
        plan = plan._replace(changes=changes)
        return _Compared(plan, owned, mirrors, [], held=held, unsaid=unsaid)

    def _note(self, source: frozenset[Acl] | NoAcls) -> None:
        """Let the ACLs of the source be noted; without an authorizer it has none."""
        if not isinstance(source, NoAcls):
            self._on_read(source)
        elif source.disabled:
            self._on_read(frozenset())

    def _held(
        self, changes: Sequence[AclChange], names: Mapping[str, str]
    ) -> tuple[dict[Acl, str | None], list[Change]]:
        """The allowances to be made that would apply to the mirror of a topic that waits, or may
        have to; and a row for each mirror of one of which the source does not say that."""
        fresh = allowances(change.acl for change in changes if change.action == "create")
        if not fresh:
            return {}, []
        applying = applying_acls(names.values(), fresh)
        now = self._since_landed({topic for topic, name in names.items() if applying[name]})
        waiting = self._waiting() | now.made_again
        mirrors = {name for topic in waiting if (name := self._remote_topic(topic)) is not None}
        unsaid = {names[topic]: topic for topic in now.unknown - waiting}
        held: dict[Acl, str | None] = dict.fromkeys(on_topics(fresh, unsaid), _UNSAID)
        held |= dict.fromkeys(on_topics(fresh, mirrors), _WAITS)
        return held, [acls_wait(*one, self.flow) for one in sorted(unsaid.items())]

    def _owned(self, flow: str) -> dict[Acl, str | None]:
        """The ACLs that a flow made and has not deleted, each with its policy at that time; read
        again once a change was recorded."""
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
            """Whether only mirrors lie below a prefix of the target, which may have topics of its
            own anywhere.

            Our own checkpoints topic counts as a mirror only for a right on all topics of the
            source: it permits reading the same in `__consumer_offsets` there.
            """
            below = strange.below(prefix)
            return all(topic == checkpoints and prefix == every for topic in below)

        return Mirrors(names, self._upstream(owned, names), self._naming.target_prefix, closed)

    def _names(self) -> dict[str, str]:
        """Target topics by source topic, of all selected topics, whether they exist yet or not."""
        names = {
            topic: self._remote_topic(topic)
            for topic in self._source.topics()
            if self._selection.selects(topic)
        }
        return {topic: name for topic, name in names.items() if name is not None}

    def _upstream(
        self, owned: Mapping[Acl, str | None], names: Mapping[str, str]
    ) -> dict[str, str]:
        """Target topics by source topic, of topics with ACLs of ours no longer selected, or there.

        Only a name of the default policy shows by itself that the policy made it; with other
        policies, the ACL must have been noted with the policy.
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
