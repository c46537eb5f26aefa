"""Which ACLs a flow owes its target: MirrorMaker 2's rule (mm2.md 1.7), by difference and with removal. Pure.

ALLOW WRITE is dropped and ALLOW ALL becomes ALLOW READ. All else is kept: DENY of any operation, principal and host.

PREFIXED patterns and the wildcard `*`, which MirrorMaker 2 loses or makes useless, are written out: one LITERAL ACL for
every mirrored topic that they apply to. A PREFIXED ACL on the target would also hold for topics that have the prefix
there but are no mirrors (made there, excluded here, or made tomorrow), and grant what nobody granted. The price is more
ACLs; they are written before a new topic is made, so that it is never there without them.

An ACL is taken away when this flow made it, and no ACL of the source asks for it any more. That a topic was deleted at
the source, or is no longer selected, is no reason: its mirror stays, and so do the rights on it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import astuple, dataclass
from typing import Literal, NamedTuple

from mirrorlake.core.changes import Change

KIND = "acl"
_WILDCARD = "*"


@dataclass(frozen=True, order=True)
class Acl:
    """One ACL on topics, in Kafka's words: pattern is LITERAL or PREFIXED, permission ALLOW or DENY."""

    pattern: str
    name: str
    principal: str
    host: str
    operation: str
    permission: str

    def text(self) -> str:
        """The ACL as it stands in `changes`: a JSON list, which `parse` reads back."""
        return json.dumps(astuple(self), ensure_ascii=False)

    @classmethod
    def parse(cls, text: str) -> "Acl":
        """Read what `text` gave."""
        return cls(*json.loads(text))


class AclChange(NamedTuple):
    """What to do with one ACL of the target. `forget`: it was ours, but is gone already."""

    action: Literal["create", "delete", "forget"]
    acl: Acl

    def row(self, error: str | None = None) -> Change:
        """This change as a row of `changes`."""
        text = self.acl.text()
        before, after = (None, text) if self.action == "create" else (text, None)
        done: Literal["done", "gone"] = "gone" if self.action == "forget" else "done"
        return Change(KIND, self.acl.name, before, after, "refused" if error else done, error)


def owned_acls(history: Iterable[Change]) -> frozenset[Acl]:
    """The ACLs that a flow made and has not taken away, by its rows of `changes`, oldest first."""
    owned: set[Acl] = set()
    for change in history:
        if change.kind != KIND or change.outcome not in ("done", "gone"):
            continue
        if change.before is not None:
            owned.discard(Acl.parse(change.before))
        if change.after is not None:
            owned.add(Acl.parse(change.after))
    return frozenset(owned)


def implied_acls(source: Iterable[Acl], names: Mapping[str, str]) -> frozenset[Acl]:
    """What the ACLs of the source mean for mirrors; `names` are target topics by source topic."""
    implied: set[Acl] = set()
    prefixed: dict[str, list[str]] = {}
    for acl in source:
        kept = _kept(acl)
        if kept is None:
            continue
        if acl.pattern == "PREFIXED":
            if acl.name not in prefixed:
                prefixed[acl.name] = [names[topic] for topic in names if topic.startswith(acl.name)]
            targets: Sequence[str] = prefixed[acl.name]
        elif acl.name == _WILDCARD:
            targets = list(names.values())
        else:
            targets = [names[acl.name]] if acl.name in names else []
        operation, permission = kept
        implied.update(Acl("LITERAL", name, acl.principal, acl.host, operation, permission) for name in targets)
    return frozenset(implied)


def plan_acls(
    source: AbstractSet[Acl],
    target: AbstractSet[Acl],
    owned: AbstractSet[Acl],
    names: Mapping[str, str],
    upstream: Mapping[str, str],
) -> list[AclChange]:
    """Give the changes after which the target has what the source implies, and nothing of ours beyond; creations first.

    `names` are target topics by selected source topic; `upstream` the same for topics that were mirrored earlier. An
    owned ACL on any other name stays, because nobody can say what it follows from.
    """
    traced = {**upstream, **names}
    mirrors = frozenset(traced.values())
    asked = implied_acls(source, traced)
    missing = implied_acls(source, names) - target
    stale = {acl for acl in owned - asked if acl.name in mirrors}
    return [
        *(AclChange("create", acl) for acl in sorted(missing)),
        *(AclChange("delete" if acl in target else "forget", acl) for acl in sorted(stale)),
    ]


def _kept(acl: Acl) -> tuple[str, str] | None:
    """Operation and permission of an ACL on the target, None if it is dropped."""
    if acl.permission == "ALLOW" and acl.operation == "WRITE":
        return None
    if acl.permission == "ALLOW" and acl.operation == "ALL":
        return "READ", "ALLOW"
    return acl.operation, acl.permission
