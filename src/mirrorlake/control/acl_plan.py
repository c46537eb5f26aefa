"""Which ACLs a flow's target should have: MirrorMaker 2's rule (docs/mm2.md, "ACLs"), applied by
difference and with removal. Pure.

ALLOW WRITE is dropped and ALLOW ALL becomes ALLOW READ. All else is kept: DENY of any operation,
principal and host.

PREFIXED patterns and the wildcard `*`, which MirrorMaker 2 loses or makes useless, stay one ACL
where the flow's policy keeps prefixes and only mirrors lie below: `orders` becomes PREFIXED
`east.orders`, `*` becomes PREFIXED `east.`. Elsewhere (with a custom policy, or with topics of the
target's own below, such as `east.private`) such an ACL would grant more than the source does. It is
then written out: one LITERAL ACL for each mirrored topic that it applies to, before the topic is
made. That multiplies ACLs by topics, so it stops at MAX_WRITTEN_OUT, and is reported. No principal
loses a right by that, except that a prefix is removed which has come to allow more than the source
does.

An ACL is removed when this flow made it under its present policy and no ACL of the source implies
it any more. A topic that was deleted at the source, or is no longer selected, is no reason: its
mirror stays, and so do the rights on it. Nor is a change of policy: readers of the earlier mirrors
keep their rights until an operator decides otherwise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from mirrorlake.control.sorted_names import Prefixes, SortedNames
from mirrorlake.kafka.values import Acl, Grant
from mirrorlake.lake.changes import Change

KIND = "acl"
#: The most ACLs that a flow writes out for patterns that its target cannot have unchanged.
MAX_WRITTEN_OUT = 10_000


class AclChange(NamedTuple):
    """What to do with one ACL of the target. `forget`: it was the flow's, but is already gone."""

    action: Literal["create", "delete", "forget"]
    acl: Acl

    def row(self, error: str | None = None, policy: str | None = None) -> Change:
        """A row of `changes`; `policy` is the flow's policy of names (`owned_acls`)."""
        text = self.acl.text()
        before, after = (None, text) if self.action == "create" else (text, None)
        done: Literal["done", "gone"] = "gone" if self.action == "forget" else "done"
        return Change(
            KIND,
            self.acl.name,
            before,
            after,
            outcome="refused" if error else done,
            error=error,
            policy=policy,
        )

    def begun(self, policy: str) -> Change:
        """The row that notes, before an ACL is made, that it is the flow's."""
        return Change(KIND, self.acl.name, None, self.acl.text(), outcome="begun", policy=policy)


@dataclass(frozen=True)
class Mirrors:
    """How a flow names its mirrors.

    `names` are target topics by selected source topic; `upstream` are those of topics that were
    mirrored earlier. `prefix` maps a prefix of source topics to that of their mirrors, None where
    the policy cannot say; `closed` says whether only mirrors lie below such a prefix of the target.
    """

    names: Mapping[str, str]
    upstream: Mapping[str, str] = field(default_factory=dict)
    prefix: Callable[[str], str | None] = lambda prefix: None
    closed: Callable[[str], bool] = lambda prefix: True

    def wide(self, prefix: str) -> str | None:
        """The target's prefix for an ACL on a prefix of the source, None if it is written out."""
        mirrored = self.prefix(prefix)
        return mirrored if mirrored is not None and self.closed(mirrored) else None


class Implied(NamedTuple):
    """The ACLs that a source implies for its mirrors, and ACLs of the source that would be too many
    to write out. If a denial is among the latter, nothing is allowed either."""

    acls: frozenset[Acl]
    withheld: tuple[Acl, ...]


class AclPlan(NamedTuple):
    """The changes, creations first; the source's ACLs that are not written out; and ACLs of the
    target that are left alone since the flow made them under another policy, with that policy
    (None: an earlier version did not note it)."""

    changes: list[AclChange]
    withheld: tuple[Acl, ...]
    left: dict[Acl, str | None]


def owned_acls(history: Iterable[Change]) -> dict[Acl, str | None]:
    """The ACLs that a flow made, or began to make, and has not removed, by its rows of `changes`,
    oldest first; each with the policy at that time."""
    owned: dict[str, str | None] = {}
    for change in history:
        if change.kind != KIND:
            continue
        if change.outcome in ("done", "gone") and change.before is not None:
            owned.pop(change.before, None)
        if change.after is not None:
            if change.outcome in ("begun", "done"):
                owned[change.after] = change.policy
            elif change.outcome == "refused":
                owned.pop(change.after, None)
    return {Acl.parse(text): policy for text, policy in owned.items()}


def implied_acls(
    source: Iterable[Acl], mirrors: Mirrors, limit: int = MAX_WRITTEN_OUT, writable: bool = False
) -> Implied:
    """The ACLs that the source's imply for mirrors of selected topics. With `writable`, mirrors are
    written to like the source was, so ALLOW WRITE and ALLOW ALL stay unchanged."""
    implied: set[Acl] = set()
    withheld: list[Acl] = []
    below: dict[str, list[tuple[str, str]]] = {}
    topics = SortedNames(mirrors.names)
    written = 0
    rules = ((acl, acl) for acl in source) if writable else _rules(source)
    for asked, kept in sorted(rules, key=lambda rule: (rule[1].permission != "DENY", rule[0])):
        if asked.prefix is None:
            implied.update(
                kept.on("LITERAL", mirrors.names[topic])
                for topic in {asked.name} & mirrors.names.keys()
            )
            continue
        if asked.prefix not in below:
            below[asked.prefix] = _below(asked.prefix, topics.below(asked.prefix), mirrors)
        if written + len(below[asked.prefix]) > limit:
            withheld.append(asked)
            continue
        written += len(below[asked.prefix])
        implied.update(kept.on(*place) for place in below[asked.prefix])
    if any(acl.permission == "DENY" for acl in withheld):
        implied = {acl for acl in implied if acl.permission == "DENY"}
    return Implied(frozenset(implied), tuple(withheld))


def _below(prefix: str, topics: Sequence[str], mirrors: Mirrors) -> list[tuple[str, str]]:
    """Patterns and names of ACLs in place of one on a source's prefix; none without `topics`."""
    names = [mirrors.names[topic] for topic in topics]
    wide = mirrors.wide(prefix) if names else None
    if wide is None:
        return [("LITERAL", name) for name in names]
    # A name that the policy forms differently, such as that of heartbeats, does not lie below.
    return [("PREFIXED", wide), *(("LITERAL", name) for name in names if not name.startswith(wide))]


def plan_acls(
    source: AbstractSet[Acl],
    target: AbstractSet[Acl],
    owned: Mapping[Acl, str | None],
    *,
    mirrors: Mirrors,
    policy: str | None = None,
    limit: int = MAX_WRITTEN_OUT,
) -> AclPlan:
    """Give the changes after which the target has what the source implies, and none of our ACLs
    beyond that.

    An owned ACL stays if its policy is another one, or if it is unknown which source topic its name
    stands for.

    Args:
        source, target: the ACLs of both sides.
        owned: the flow's ACLs at the target, each with its policy at that time.
        mirrors: how topics are named at the target.
        policy: the present one.
        limit: how many topics a pattern is written out for.
    """
    implied, withheld = implied_acls(source, mirrors, limit)
    asked = _SourceAcls(source, mirrors, implied | target, frozenset(withheld))
    stale, left = set(), {}
    for acl, made_under in owned.items():
        if (made_under is not None and made_under != policy) or not asked.knows(acl):
            left[acl] = made_under
        elif acl not in implied and not asked.still(acl):
            stale.add(acl)
    return AclPlan(
        [
            *(AclChange("create", acl) for acl in sorted(implied - target)),
            *(AclChange("delete" if acl in target else "forget", acl) for acl in sorted(stale)),
        ],
        withheld,
        {
            acl: made_under
            for acl, made_under in sorted(left.items())
            if acl in target and acl not in implied
        },
    )


class _SourceAcls:
    """Whether the source still implies an ACL of the target; `there` are the target's present and
    imminent ACLs. Checks owned ACLs one by one: the source's may be too many written out."""

    def __init__(
        self,
        source: Iterable[Acl],
        mirrors: Mirrors,
        there: AbstractSet[Acl],
        withheld: AbstractSet[Acl],
    ) -> None:
        self._mirrors, self._there, self._withheld = mirrors, there, withheld
        self._literal: set[tuple[Grant, str]] = set()
        self._prefixed: set[tuple[Grant, str]] = set()
        self._wide: dict[tuple[Grant, str | None], list[Acl]] = {}
        for asked, kept in _rules(source):
            if asked.prefix is None:
                self._literal.add((kept.grant, asked.name))
            else:
                mirrored = mirrors.prefix(asked.prefix)
                self._prefixed.add((kept.grant, asked.prefix))
                self._wide.setdefault((kept.grant, mirrored), []).append(asked)
        self._prefixes = Prefixes(prefix for _, prefix in self._prefixed)
        self._topics: dict[str, list[str]] = {}
        for topic, name in {**mirrors.upstream, **mirrors.names}.items():
            self._topics.setdefault(name, []).append(topic)

    def knows(self, acl: Acl) -> bool:
        """Whether its topics are mirrors of this flow, as it names them now."""
        return acl.prefix is not None or acl.name in self._topics

    def still(self, acl: Acl) -> bool:
        """Whether any ACL of the source implies it."""
        if acl.prefix is not None:
            wide = self._wide.get((acl.grant, acl.name), ())
            return any(self._is_wide(acl, rule) for rule in wide)
        topics = self._topics[acl.name]
        if any((acl.grant, topic) in self._literal for topic in topics):
            return True
        return any(
            self._is_written_out(acl, prefix)
            for topic in topics
            for prefix in self._prefixes.of(topic)
            if (acl.grant, prefix) in self._prefixed
        )

    def _is_wide(self, acl: Acl, rule: Acl) -> bool:
        """Whether a rule implies an ACL on its mirrored prefix."""
        return self._mirrors.wide(str(rule.prefix)) is not None or (
            acl.permission == "DENY" and rule in self._withheld
        )

    def _is_written_out(self, acl: Acl, prefix: str) -> bool:
        """Whether a rule with the same grant on a prefix implies an ACL on a topic below it."""
        wide = self._mirrors.wide(prefix)
        return (
            wide is None
            or not acl.name.startswith(wide)
            or acl.on("PREFIXED", wide) not in self._there
        )


def _rules(source: Iterable[Acl]) -> Iterator[tuple[Acl, Acl]]:
    """The source's ACLs that matter for mirrors, each with its form there."""
    for acl in source:
        if acl.permission == "ALLOW" and acl.operation == "WRITE":
            continue
        reads = acl.permission == "ALLOW" and acl.operation == "ALL"
        yield acl, replace(acl, operation="READ") if reads else acl
