"""The order in which ACLs are made and removed, so that a target never allows what its source
denies: denials are made before what they limit, and removed after it. Pure."""

from collections.abc import Collection, Iterable

from mirrorlake.control.sorted_names import Prefixes, SortedNames
from mirrorlake.kafka.values import Acl


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


def _begin(acl: Acl) -> str:
    """The name of its topic, or the prefix of its topics."""
    return acl.name if acl.prefix is None else acl.prefix
