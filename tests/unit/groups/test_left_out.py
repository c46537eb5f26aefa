"""Groups that a flow leaves out are noted, also where the first turn that asks for them fails."""

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.flow import Flow
from mirrorlake.errors import ClusterUnreachable
from mirrorlake.groups import left_out
from mirrorlake.groups.left_out import LeftOutGroups
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.offsets.positions import Committed


def test_a_turn_that_fails_is_made_up_for_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not a minute later, while the failure counts as over."""
    noted: list[object] = []
    monkeypatch.setattr(left_out, "left_out_groups", lambda *_: {})
    monkeypatch.setattr(left_out, "note_left_out", lambda *given: noted.append(given[2]))
    away = [True]

    def positions(groups: Collection[str]) -> GroupPositions:
        if away.pop():
            raise ClusterUnreachable("the source is away", alias="east")
        away.append(False)
        return GroupPositions({group: {("t", 0): Committed(5)} for group in groups})

    flow: Any = SimpleNamespace(name="east->west", settings=Flow(groups_exclude=["billing"]))
    running: Any = SimpleNamespace(mirrors=lambda _topic: True)
    source: Any = SimpleNamespace(positions=positions)
    lake: Any = SimpleNamespace(now=None)
    groups = LeftOutGroups(flow, lake, source, running)
    listing = Listing({"billing": "EMPTY", "other": "EMPTY"})
    with pytest.raises(ClusterUnreachable):
        groups.note(listing)
    away.append(False)
    for _ in range(2):
        groups.note(listing)
    assert noted == [{"billing": ("t", 0)}], "and then once a minute"
