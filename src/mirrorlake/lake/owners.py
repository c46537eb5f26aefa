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
