"""The properties of the table `records` about its lake: identity and layout. Pure."""

import re
import uuid
from collections.abc import Mapping

from mirrorlake.errors import LakeError

#: The property that holds the lake's identity (`lake.identity`).
PROPERTY = "mirrorlake.lake_id"
#: The layout version of the tables that this code writes; a lake with a higher one is refused.
VERSION = 1


def new_identity() -> str:
    """An identity for a lake that is being made."""
    return uuid.uuid4().hex[:8]


def initial_properties(table: str) -> dict[str, str]:
    """The properties that a table is made with, beyond those of its definition. Where two processes
    make a lake at once, the first commit of `records` gives it its identity."""
    return {PROPERTY: new_identity()} if table == "records" else {}


def check_version(properties: Mapping[str, str], place: str) -> None:
    """Raise LakeError for a lake of a newer version, by the properties of its table `records`."""
    layout = properties.get("mirrorlake.version", "0")
    if not re.fullmatch(r"\d+", layout) or int(layout) > VERSION:
        raise LakeError(
            f"the lake at {place} was written by a newer mirrorlake (layout {layout}, this one "
            f"knows {VERSION}); upgrade mirrorlake, or use another lake"
        )
