"""Checks of the groups that a command names, and a summary of those not reported."""

from collections.abc import Mapping, Sequence

from mirrorlake.errors import InputError
from mirrorlake.naming.at_target import is_own_group


def refuse_own(named: Sequence[str]) -> None:
    """Raise InputError for a group that holds positions of a flow."""
    ours = [group for group in named if is_own_group(group)]
    if ours:
        raise InputError(
            f"group {ours[0]} holds the positions of a flow of mirrorlake; it must not be moved"
        )


def refuse_other_kinds(named: Sequence[str], others: Mapping[str, str]) -> None:
    """Raise InputError for a group of a kind that is not moved; `others` says which kind."""
    for group in named:
        if group in others:
            raise InputError(f"group {group or repr(group)} cannot be moved: it is {others[group]}")


def refuse_unknown(named: Sequence[str], known: set[str], where: str) -> None:
    """Raise InputError for a group that is not among the `known` ones."""
    unknown = sorted(set(named) - known)
    if unknown:
        raise InputError(
            f"group {unknown[0]} is not known on {where}; `mirrorlake groups` lists those that are"
        )


def not_reported(errors: Mapping[str, str]) -> list[str]:
    """A sentence for all groups that were not reported, if any; `errors` has reasons by group."""
    group = min(errors, default="")
    return [f"{len(errors)} groups, such as {group}: {errors[group]}"] if errors else []
