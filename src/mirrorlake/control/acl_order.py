"""The order in which ACLs are made and removed, so that a target never allows what its source
denies: denials are made before what they limit, and removed after it. Pure."""

from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from mirrorlake.control.acl_plan import AclChange
from mirrorlake.control.sorted_names import Prefixes, SortedNames
from mirrorlake.kafka.values import Acl, Grant


def denials(acls: Iterable[Acl]) -> list[Acl]:
    """The ACLs that deny."""
    return [acl for acl in acls if acl.permission == "DENY"]


def allowances(acls: Iterable[Acl]) -> list[Acl]:
    """The ACLs that allow."""
    return [acl for acl in acls if acl.permission != "DENY"]


def apart(acls: Iterable[Acl], others: Collection[Acl]) -> list[Acl]:
    """ACLs that share no topic with another, whatever the principals: a wildcard may deny one."""
    if not others:
        return list(acls)
    exact = {(acl.prefix is None, acl.name) for acl in others}
    names = SortedNames(_begin(acl) for acl in others)
    prefixes = Prefixes(acl.prefix for acl in others if acl.prefix is not None)

    def overlaps(acl: Acl) -> bool:
        below = acl.prefix is not None and names.below(acl.prefix)
        same = (acl.prefix is None, acl.name) in exact
        return bool(same or below or prefixes.of(_begin(acl)))

    return [acl for acl in acls if not overlaps(acl)]


def on_topics(acls: Sequence[Acl], topics: Collection[str]) -> list[Acl]:
    """The ACLs that apply to one of these topics, be it among others."""
    if not acls or not topics:
        return []
    others = set(apart(acls, [acls[0].on("LITERAL", topic) for topic in topics]))
    return [acl for acl in acls if acl not in others]


def _begin(acl: Acl) -> str:
    """The name of its topic, or the prefix of its topics."""
    return acl.name if acl.prefix is None else acl.prefix


def removals(
    changes: Iterable[AclChange],
    undone: AbstractSet[Acl],
    closed: Callable[[str], bool] = lambda prefix: True,
) -> list[Acl]:
    """The ACLs to remove now. Those to be replaced by an ACL that could not be made stay, unless
    they allow something below a prefix that is not `closed`."""
    waiting: dict[Grant, list[Acl]] = {}
    for acl in undone:
        waiting.setdefault(acl.grant, []).append(acl)
    places = {grant: _Places(acls) for grant, acls in waiting.items()}
    return [
        change.acl
        for change in changes
        if change.action == "delete"
        and (
            _allows_more(change.acl, closed)
            or change.acl.grant not in places
            or not places[change.acl.grant].overlap(change.acl)
        )
    ]


def _allows_more(acl: Acl, closed: Callable[[str], bool]) -> bool:
    """Whether it allows something on topics that are no mirrors."""
    return acl.permission == "ALLOW" and acl.prefix is not None and not closed(acl.prefix)


class _Places:
    """Where ACLs of one grant apply."""

    def __init__(self, acls: Sequence[Acl]) -> None:
        self._names = SortedNames(acl.name for acl in acls)
        self._prefixes = Prefixes(acl.prefix for acl in acls if acl.prefix is not None)

    def overlap(self, acl: Acl) -> bool:
        """Whether one has another ACL's effect on some topic; either may apply to more topics."""
        below = acl.prefix is not None and self._names.below(acl.prefix)
        return bool(below or self._prefixes.of(acl.name))
