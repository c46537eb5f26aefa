"""What is read again is of the topic that was staged, also at the moment when it is committed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mirrorlake.config.topology import load_topology
from mirrorlake.errors import InputError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.definitions import rows_of
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.targets import LivingMirror
from mirrorlake.landing import read_again as module
from mirrorlake.landing.source_comparison import LandingPlan
from mirrorlake.offsets.positions import PartitionGeneration, TopicAndPartition
from mirrorlake.offsets.ranges import OffsetRanges
from mirrorlake.testing import MemoryCluster
from tests.support.lake_rows import (
    FLOW,
    ago,
    append,
    commit,
    no_session,
    opened,
    staged,
    write_file,
)

PLACE = {"topic": "orders", "partition": 0, "generation": 0}


def trimmed(folder: Path, east: MemoryCluster) -> Deployment:
    """A lake of which retention has deleted offsets below 30, and the stage holds 30 to 49."""
    file = write_file(folder)
    lake, _ = opened(no_session, file)
    topic_id = east.topic_ids(["orders"])["orders"]
    common = {"source_cluster": "east", "topic": "orders"}
    begun = {**common, "generation": 0, "topic_id": topic_id, "started_at": ago(9)}
    lake.append("generations", rows_of("generations", [begun]))
    removal = {**common, "partition": 0, "generation": 0, "first_offset": 0, "below": 30}
    lake.append("removals", rows_of("removals", [{**removal, "removed_at": ago(9)}]))
    commit(lake, "records", staged(range(30, 50)))
    return Deployment.opened(lake, Connections(load_topology(file), {"east": east}))


@pytest.mark.parametrize("again", [False, True], ids=["as it was", "made again meanwhile"])
def test_a_topic_that_is_made_again_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    east = MemoryCluster("east", {"orders": [50]})
    deployment = trimmed(tmp_path, east)
    committed: list[dict[str, Any]] = []

    def land_again(*_: object, check: Any, ends: dict[str, int], **_more: object) -> None:
        if again:
            east.make("orders", 50)
        check()
        committed.append(ends)

    monkeypatch.setattr(module, "land_again", land_again)
    incident = {"flow": FLOW, **PLACE, "first_offset": 10, "last_offset": 29, "at": ago(5)}
    if again:
        with pytest.raises(InputError, match="was made again"):
            module.read_again(deployment, "east", incident)
        assert committed == []
    else:
        assert module.read_again(deployment, "east", incident) == 10
        assert committed == [{("orders", 0): 30}]


@pytest.mark.parametrize("first", [0, 10])
def test_what_was_read_again_for_another_flow_is_not_staged_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """From the start of the log, too: no flow goes on behind an offset that is there twice."""
    deployment = trimmed(tmp_path, MemoryCluster("east", {"orders": [50]}))
    committed: list[Mapping[TopicAndPartition, int]] = []

    def land_again(
        lake: Lake,
        plan: LandingPlan,
        *_: object,
        ends: Mapping[TopicAndPartition, int],
        **_more: object,
    ) -> None:
        (start,), (end,) = plan.starts.values(), ends.values()
        commit(lake, "records", staged(range(start, end)))
        committed.append(ends)

    monkeypatch.setattr(module, "land_again", land_again)
    for minutes in (5, 4):  # the incident of one flow, and of another
        incident = {
            "flow": FLOW,
            **PLACE,
            "first_offset": first,
            "last_offset": 29,
            "at": ago(minutes),
        }
        assert module.read_again(deployment, "east", incident) == first
    assert committed == [{("orders", 0): 30}]


def test_its_batch_is_numbered_above_all_that_are_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock alone it came below one that a clock had numbered that was ahead."""
    deployment = trimmed(tmp_path, MemoryCluster("east", {"orders": [50]}))
    ahead = 2**52
    append(deployment.lake, "records", staged(range(50, 60), batch_id=ahead))
    plans: list[LandingPlan] = []
    monkeypatch.setattr(module, "land_again", lambda _, plan, *__, **___: plans.append(plan))
    incident = {"flow": FLOW, **PLACE, "first_offset": 10, "last_offset": 29, "at": ago(5)}
    module.read_again(deployment, "east", incident)
    assert [plan.newest_batch for plan in plans] == [ahead]


@pytest.mark.parametrize(
    ("there", "gone"), [(range(10, 30), None), (range(14, 30), (10, 13)), (range(0), (10, 29))]
)
def test_only_what_the_source_had_not_any_more_is_gone_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: range, gone: tuple[int, int] | None
) -> None:
    """What was staged again may be deleted again: the flow would go on behind it without a word."""
    deployment = trimmed(tmp_path, MemoryCluster("east", {"orders": [50]}))

    def land_again(*_: object, **_more: object) -> None:
        commit(deployment.lake, "records", staged(there))

    monkeypatch.setattr(module, "land_again", land_again)
    incident = {"flow": FLOW, **PLACE, "first_offset": 10, "last_offset": 29, "at": ago(5)}
    module.read_again(deployment, "east", incident)
    incidents = deployment.event_log.incidents
    decided = incidents.decided(FLOW, lambda _: LivingMirror("east.orders", 0))
    place = PartitionGeneration("orders", 0, 0)
    accepted = {} if gone is None else {place: OffsetRanges([gone])}
    assert decided.accepted_holes() == accepted
    assert not decided.trimmed and incidents.open_kinds(FLOW) == set()
