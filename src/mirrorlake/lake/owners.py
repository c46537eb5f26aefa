"""Owners of an application, which append to a table under rising numbers, one after another.
Pure."""

from mirrorlake.errors import Fenced

#: How many numbers an owner of an application has to itself above those of owners before: more than
#: any has on its way.
OWNER_NUMBERS = 1_000_000


def fenced(table: str, application: str, known: int | None, version: int) -> Fenced:
    """What a process hears whose appends are not taken any more."""
    return Fenced(
        f"another process has taken over {application} and writes its part of {table} (its number "
        f"is {known}, ours {version}), while this one was suspended or cut off; this one writes "
        "nothing more and ends: be sure that only one process does this"
    )


def next_owner(known: int | None, least: int) -> int:
    """The number of the next owner of an application that has come as far as `known`; at least
    `least`."""
    return least if known is None else max(least, known + OWNER_NUMBERS)


def is_done(table: str, application: str, known: int | None, version: int) -> bool:
    """Whether an application that has come as far as `known` has appended under a number already,
    by an attempt before: no two owners of an application have a number in common. Raises Fenced
    where it has come further."""
    if known is not None and known > version:
        raise fenced(table, application, known, version)
    return known == version
