"""What flows are called on their targets. Pure."""

import re
from collections.abc import Iterable

_NAME = re.compile(r"mirrorlake-([0-9a-f]{8})-(.+->.+)")


def name_at_target(lake_id: str, flow: str) -> str:
    """The group of a flow's positions, and what its transactional ids begin with."""
    return f"mirrorlake-{lake_id}-{flow}"


def is_own_group(group: str) -> bool:
    """Whether a group holds the positions of a flow, or its processes (`worker_groups.py`): of any
    lake, since lakes share clusters."""
    return _NAME.fullmatch(group) is not None


def of_other_lakes(groups: Iterable[str], lake_id: str | None, flow: str) -> list[str]:
    """Those of groups that hold the positions of flows of a name, of other lakes than one."""
    names = ((group, _NAME.fullmatch(group)) for group in groups)
    return [group for group, name in names if name and name[2] == flow and name[1] != lake_id]
