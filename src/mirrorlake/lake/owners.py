"""Owners of an application, which append under rising numbers, one after another. Pure."""

from mirrorlake.errors import Fenced

#: How many numbers an owner has to itself above those of earlier ones: more than any in flight.
OWNER_NUMBERS = 1_000_000


def fenced(table: str, application: str, known: int | None, version: int) -> Fenced:
    """The error for a process whose appends are no longer accepted."""
    return Fenced(
        f"another process has taken over {application} and writes its part of {table} (its number "
        f"is {known}, ours {version}), while this one was suspended or cut off; this one writes "
        "nothing more and ends: be sure that only one process does this"
    )


def next_owner(known: int | None, least: int) -> int:
    """The number of the next owner of an application that has reached `known`; at least `least`."""
    return least if known is None else max(least, known + OWNER_NUMBERS)


def is_done(table: str, application: str, known: int | None, version: int) -> bool:
    """Whether an application that has reached `known` has already appended under `version`: no two
    owners share a number. Raises Fenced where `known` is higher."""
    if known is not None and known > version:
        raise fenced(table, application, known, version)
    return known == version
