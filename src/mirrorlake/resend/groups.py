"""Consumer groups of restored topics: they continue exactly behind what they had committed, by the
restore's own map.

The source is never queried. A position behind the last restored record goes to the end of what was
restored of its partition, whatever producers wrote there since; one in front of the first goes to
its start. No group with members is touched, and none is moved backwards: a restore notes its moves,
so a repeated one leaves groups alone that have read on since.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mirrorlake import failpoints
from mirrorlake.groups.checkpoint_plan import Checkpoint, GroupPartition
from mirrorlake.groups.mover import move_in_steps, outcome_of, target_groups
from mirrorlake.groups.moves import MoveResult, Standing, plan_moves
from mirrorlake.groups.sync_plan import TargetGroup
from mirrorlake.kafka.groups import GroupAdmin, positions_or_errors
from mirrorlake.lake.changes import Change
from mirrorlake.offsets.positions import (
    Committed,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)


@dataclass(frozen=True)
class GroupsPlanned:
    """The outcome for each position, and how the groups stand at the target."""

    results: tuple[MoveResult, ...]
    goals: Mapping[str, TargetGroup]


def standings(
    positions: Mapping[GroupPartition, Committed],
    names: Mapping[str, str],
    translated: Mapping[TopicPartitionOffset, Translated],
    began: Mapping[TopicAndPartition, int],
    moved: Mapping[str, str],
) -> list[Standing]:
    """Where positions at the source lead in restored topics.

    Args:
        positions: of the source; those in partitions that no restored topic has are left out.
        names: restored topics by source topic.
        translated: positions by the restore's map.
        began: the log ends of the restored topics when the restore began: the positions of groups
            in partitions of which nothing was restored. What was written since lies behind them.
        moved: the positions that this restore set before, by their resource in `changes`.
    """
    standings_of_groups = []
    for (group, topic, partition), position in sorted(positions.items()):
        target_topic = names.get(topic, "")
        first = began.get((target_topic, partition))
        if first is None:
            continue
        there = translated.get((topic, partition, position.offset))
        offset = first if there is None or there.end == 0 else there.offset
        checkpoint = Checkpoint(
            group,
            topic,
            partition,
            position.offset,
            target_topic,
            target_position=offset,
            metadata=position.metadata,
            synced=moved.get(f"{group} {target_topic}-{partition}") == str(offset),
        )
        standings_of_groups.append(Standing(checkpoint, True, 0))
    return standings_of_groups


def moved_before(history: Sequence[Change]) -> dict[str, str]:
    """The positions that were set, by their resource in `changes`, from its rows about groups."""
    return {
        change.resource: change.after
        for change in history
        if change.outcome == "done" and change.after
    }


def plan_groups(admin: GroupAdmin, standings: Sequence[Standing]) -> GroupsPlanned:
    """What to do about each position; only asks the target. Raises ClusterUnreachable."""
    goals, errors = target_groups(admin, {standing.checkpoint.group_id for standing in standings})
    return GroupsPlanned(tuple(plan_moves(standings, goals, errors, force=False)), goals)


def restore_groups(admin: GroupAdmin, planned: GroupsPlanned) -> Iterator[list[MoveResult]]:
    """Set positions, some groups at a time, and read them back; yield the outcomes step by step."""
    moving = {
        result.standing.checkpoint.group_partition: result
        for result in planned.results
        if result.done == "would move"
    }
    yield [result for result in planned.results if result.done != "would move"]
    for step in move_in_steps(
        admin, planned.goals, [result.standing.checkpoint for result in moving.values()]
    ):
        now = positions_or_errors(admin, {sent.checkpoint.group_id for sent in step})
        failpoints.reached("group-moved")
        yield [outcome_of(moving[sent.checkpoint.group_partition], sent, now) for sent in step]
