"""In which order ACLs are made and taken away, so that at no moment a target allows what its source
denies: denials are made before what they limit, and taken away behind it. Pure."""

from collections.abc import Collection, Iterable

from mirrorlake.control.sorted_names import Prefixes, SortedNames
from mirrorlake.kafka.values import Acl


def denials(acls: Iterable[Acl]) -> list[Acl]:
    """Those that deny."""
    return [acl for acl in acls if acl.permission == "DENY"]


def allowances(acls: Iterable[Acl]) -> list[Acl]:
    """Those that allow."""
    return [acl for acl in acls if acl.permission != "DENY"]


def apart(acls: Iterable[Acl], others: Collection[Acl]) -> list[Acl]:
    """Those of some ACLs that apply to no topic to which one of the others does, whatever these
    are about: a principal may be denied by a wildcard."""
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
    """The name of its topic, or what those of its topics begin with."""
    return acl.name if acl.prefix is None else acl.prefix
