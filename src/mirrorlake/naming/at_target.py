"""The names of flows on their targets. Pure."""

import re
from collections.abc import Iterable

_NAME = re.compile(r"mirrorlake-([0-9a-f]{8})-(.+->.+)")


def name_at_target(lake_id: str, flow: str) -> str:
    """The name of the group with a flow's positions, and the prefix of its transactional ids."""
    return f"mirrorlake-{lake_id}-{flow}"


def is_own_group(group: str) -> bool:
    """Whether a group is that of a flow's positions or processes (`worker_groups.py`), of any lake,
    since lakes share clusters."""
    return _NAME.fullmatch(group) is not None


def of_other_lakes(groups: Iterable[str], lake_id: str | None, flow: str) -> list[str]:
    """The groups with positions of a flow of this name that belong to other lakes."""
    names = ((group, _NAME.fullmatch(group)) for group in groups)
    return [group for group, name in names if name and name[2] == flow and name[1] != lake_id]
