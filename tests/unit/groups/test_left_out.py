"""Groups that a flow leaves out are noted, also where the first turn that asks for them fails."""

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorlake.config.flow import Flow
from mirrorlake.errors import ClusterUnreachable, ReplicationError, TargetRefused
from mirrorlake.groups import left_out
from mirrorlake.groups.checkpoint_plan import EXCLUDED, GONE, NAMELESS, OTHER_KIND
from mirrorlake.groups.checkpoint_table import left_out_groups
from mirrorlake.groups.inventory import _noted_as_left
from mirrorlake.groups.left_out import LeftOutGroups
from mirrorlake.kafka.groups import GroupPositions, Listing
from mirrorlake.offsets.positions import Committed
from tests.support.group_turns import Turn
from tests.support.lake_rows import FLOW, no_session, opened, write_file


def test_a_turn_that_fails_is_made_up_for_by_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not a minute later, while the failure counts as over."""
    noted: list[object] = []
    monkeypatch.setattr(left_out, "left_out_groups", lambda *_: defaultdict(dict))
    monkeypatch.setattr(
        left_out,
        "note_left_out",
        lambda *given: noted.append([(why, groups) for why, groups in given[2] if groups]),
    )
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
        groups.note(listing, frozenset())
    away.append(False)
    for _ in range(2):
        groups.note(listing, frozenset())
    assert noted == [[(EXCLUDED, {"billing": ("t", 0)})]], "and then once a minute"


def test_one_query_answers_for_all_reasons() -> None:
    asked: list[str] = []
    row = {"topic": "t", "partition": 0}
    rows = [
        {**row, "group_id": name, "reason": why} for name, why in (("a", EXCLUDED), ("b", GONE))
    ]

    def query_rows(name: str, **_: object) -> list[dict[str, Any]]:
        asked.append(name)
        return rows

    lake: Any = SimpleNamespace(query_rows=query_rows)
    nothing: dict[str, Any] = {OTHER_KIND: {}, NAMELESS: {}}
    assert left_out_groups(lake, FLOW) == nothing | {EXCLUDED: {"a": ("t", 0)}}
    assert len(asked) == 1


def test_groups_that_cannot_be_moved_are_named_without_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was noted of them: a failover without the source said not a word, and ended well."""
    monkeypatch.setattr(left_out, "LEFT_OUT_SECONDS", 0.0)
    lake, topology = opened(no_session, write_file(tmp_path, flows={FLOW: {"groups": ["s.*"]}}))
    flow = topology.flow(FLOW)
    running: Any = SimpleNamespace(mirrors=lambda _topic: True)
    source: Any = SimpleNamespace(positions=lambda _: GroupPositions({}))

    def named(
        listing: Listing, others: frozenset[str] | None, anew: bool = False
    ) -> dict[str, str]:
        turns = LeftOutGroups(flow, lake, source, running) if anew else groups
        turns.note(listing, others)
        route: Any = SimpleNamespace(flow=flow, lake=lake.now)
        return _noted_as_left(route, {})

    groups = LeftOutGroups(flow, lake, source, running)
    there, reasons = Listing({"": "EMPTY"}), {"": NAMELESS, "sharing": OTHER_KIND}
    assert named(there, frozenset({"sharing", "other"})) == reasons
    assert named(there, None) == reasons, "no answer is no end of them"
    assert named(Listing({}, errors=("a broker is away",)), frozenset(), anew=True) == reasons
    other = {"": NAMELESS, "streaming": OTHER_KIND}
    assert named(there, frozenset({"streaming"}), anew=True) == other
    assert named(Listing({}), frozenset(), anew=True) == {}
    rows = len(lake.ask_table("checkpoints"))
    named(Listing({}), frozenset(), anew=True)
    assert len(lake.ask_table("checkpoints")) == rows


def test_they_are_noted_where_the_checkpoints_topic_is_refused(tmp_path: Path) -> None:
    """The turn ended there: nothing was noted of them, and of groups that the source did not report
    nothing was said."""
    turn = Turn(tmp_path, [("alice", "orders", 0)])
    source = turn.groups.source
    noted: list[object] = []
    source._left_out.note = lambda *_: noted.append(1)  # type: ignore[method-assign]
    refused = TargetRefused("a policy forbids it", topic="east.checkpoints.internal", reason="R")

    def publish(_checkpoints: object) -> int:
        raise refused

    published: list[object] = []
    source._topic.publish = publish  # type: ignore[method-assign]
    turn.all_stand_at(12)
    with pytest.raises(TargetRefused):
        source.checkpoint()
    turn.all_stand_at(13)
    reported = turn.source.positions
    turn.source.positions = lambda groups: GroupPositions(  # type: ignore[method-assign]
        reported(groups).positions, {"bob": "its coordinator is away"}
    )
    with pytest.raises(ReplicationError, match="a policy forbids it") as both:
        source.checkpoint()
    assert "such as bob: its coordinator is away" in str(both.value) and len(noted) == 2
    source._topic.publish = (  # type: ignore[method-assign]
        lambda rows: published.extend(rows) or 0
    )
    turn.source.positions = reported  # type: ignore[method-assign]
    assert source.checkpoint() == []
    assert [row.upstream for row in published] == [13], "what was not published waits"
