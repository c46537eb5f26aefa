"""Keeps the ACLs of a flow's target topics as `core.acl_plan` wants them, by difference."""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from mirrorlake.core.acl_plan import KIND, Acl, AclChange, owned_acls, plan_acls
from mirrorlake.core.changes import Change, ChangeLog
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.precedence import opposite_name
from mirrorlake.engine.repeats import Refusals
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.admin_acls import NoAcls, create_acls, delete_acls, describe_topic_acls

logger = logging.getLogger(__name__)


class _Compared(NamedTuple):
    """What a look at both sides gave: what must change, or, where a cluster has no ACLs to tell, why not."""

    changes: list[AclChange]
    untold: list[Change]


class AclSync:
    """Topic ACLs of one flow. Every call asks both clusters and raises ClusterUnreachable when one is silent.

    Which ACLs are ours is read from `changes`; without that history nothing is taken away.
    """

    def __init__(
        self,
        flow: ResolvedFlow,
        connections: Connections,
        log: ChangeLog,
        remote_topic: Callable[[str], str | None],
    ) -> None:
        """Prepare; `remote_topic` gives the target topic of a source topic, None where there cannot be one."""
        aliases = connections.topology.aliases
        self.flow = flow
        self._selection = flow.selection(aliases)
        self._policy = flow.policy_object(aliases)
        self._has_opposite = opposite_name(flow) in connections.topology.flows
        self._source = connections.admin(flow.source)
        self._target = connections.admin(flow.target)
        self._log = log
        self._remote_topic = remote_topic
        self._refusals = Refusals()

    def plan(self) -> list[AclChange]:
        """What would be made and taken away now; changes nothing. Empty where a cluster has no authorizer."""
        return self._compare().changes

    def sync(self) -> list[Change]:
        """Change what differs, and nothing else; returns the rows that it wrote to `changes`.

        May be called before the topics are made: their ACLs are then there first. A change that is refused stops no
        other one; it is told once, and tried again after RETRY_REFUSED_SECONDS.
        """
        changes, untold = self._compare()
        self._refusals.keep({*changes, *(row.resource for row in untold)})
        rows = [row for row in untold if self._refusals.is_news(row.resource, row.error or "")]
        due = [change for change in changes if not self._refusals.waits(change)]
        said: dict[AclChange, str | None] = {change: None for change in due if change.action == "forget"}
        created = create_acls(self._target, [change.acl for change in due if change.action == "create"])
        said.update({AclChange("create", acl): error for acl, error in created.items()})
        deleted = delete_acls(self._target, [change.acl for change in due if change.action == "delete"])
        said.update({AclChange("delete", acl): error for acl, error in deleted.items()})
        for change, error in said.items():
            if error is None or self._refusals.is_news(change, error):
                rows.append(change.row(error))
        self._tell(rows)
        return rows

    def _compare(self) -> _Compared:
        source, target = describe_topic_acls(self._source), describe_topic_acls(self._target)
        untold = [
            self._untold(admin, told)
            for admin, told in ((self._source, source), (self._target, target))
            if isinstance(told, NoAcls)
        ]
        if isinstance(source, NoAcls) or isinstance(target, NoAcls):
            return _Compared([], untold)
        if self._has_opposite:
            source -= owned_acls(self._log.history(opposite_name(self.flow), KIND))
        owned = owned_acls(self._log.history(self.flow.name, KIND))
        names = self._names()
        return _Compared(plan_acls(source, target, owned, names, self._upstream(owned, names)), [])

    def _names(self) -> dict[str, str]:
        """Target topics by source topic, of all that are selected, whether they are there yet or not."""
        names = {topic: self._remote_topic(topic) for topic in self._source.topics() if self._selection.selects(topic)}
        return {topic: name for topic, name in names.items() if name is not None}

    def _upstream(self, owned: frozenset[Acl], names: Mapping[str, str]) -> dict[str, str]:
        """Target topics by source topic, of those that have our ACLs and are not selected, or not there, any more."""
        known = set(names.values())
        found = {}
        for name in {acl.name for acl in owned} - known:
            topic = self._policy.upstream_topic(name)
            if topic is not None and self._remote_topic(topic) == name:
                found[topic] = name
        return found

    def _untold(self, admin: ClusterAdmin, told: NoAcls) -> Change:
        if told.disabled:
            error = f"cluster {admin.alias} has no authorizer, so flow {self.flow.name} mirrors no ACLs"
            return Change(KIND, f"cluster {admin.alias}", None, None, "skipped", error)
        error = f"cluster {admin.alias} does not tell its ACLs to flow {self.flow.name}: {told.reason}"
        return Change(KIND, f"cluster {admin.alias}", None, None, "refused", error)

    def _tell(self, rows: list[Change]) -> None:
        for row in rows:
            if row.outcome == "skipped":
                logger.info("%s", row.error)
            elif row.outcome == "refused":
                logger.warning("flow %s: ACL on %s: %s", self.flow.name, row.resource, row.error)
        done = sum(row.outcome == "done" for row in rows)
        if done:
            logger.info("flow %s: made or took away %d ACLs on %s", self.flow.name, done, self.flow.target)
        if rows:
            self._log.record(self.flow.name, rows)
