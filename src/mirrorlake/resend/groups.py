"""Consumer groups of restored topics: they continue exactly behind what they had committed, by the
restore's own map.

The source is never queried. A position behind the last restored record goes to the end of what was
restored of its partition, whatever producers wrote there since; one in front of the first goes to
its start. No group with members is touched, and none is moved backwards: a restore notes its moves,
so a repeated one leaves groups alone that have read on since.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mirrorlake import failpoints
from mirrorlake.groups.checkpoint_plan import Checkpoint, GroupPartition
from mirrorlake.groups.mover import MovePlan, move_in_steps, outcome_of, plan_within_logs
from mirrorlake.groups.moves import MoveResult, Standing
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.groups import GroupAdmin, positions_or_errors
from mirrorlake.lake.changes import Change
from mirrorlake.offsets.positions import (
    Committed,
    TopicAndPartition,
    TopicPartitionOffset,
    Translated,
)


def standings(
    positions: Mapping[GroupPartition, Committed],
    names: Mapping[str, str],
    translated: Mapping[TopicPartitionOffset, Translated],
    began: Mapping[TopicAndPartition, int],
) -> list[Standing]:
    """Where positions at the source lead in restored topics.

    Args:
        positions: of the source; those in partitions that no restored topic has are left out.
        names: restored topics by source topic.
        translated: positions by the restore's map.
        began: the log ends of the restored topics when the restore began: the positions of groups
            in partitions of which nothing was restored. What was written since lies behind them.
    """
    standings_of_groups = []
    for (group, topic, partition), position in sorted(positions.items()):
        target_topic = names.get(topic, "")
        first = began.get((target_topic, partition))
        if first is None:
            continue
        there = translated.get((topic, partition, position.offset))
        offset, ahead = first, False
        if there is not None and there.end > 0:
            offset, ahead = there.offset, there.ahead
        checkpoint = Checkpoint(
            group,
            topic,
            partition,
            position.offset,
            target_topic,
            target_position=offset,
            metadata=position.metadata,
        )
        standings_of_groups.append(Standing(checkpoint, True, 0, ahead=ahead))
    return standings_of_groups


def moved_before(history: Sequence[Change]) -> dict[str, str]:
    """The positions that were set, by their resource in `changes`, from its rows about groups."""
    return {
        change.resource: change.after
        for change in history
        if change.outcome == "done" and change.after
    }


def plan_groups(
    admin: ClusterAdmin, groups: GroupAdmin, standings: Sequence[Standing], moved: Mapping[str, str]
) -> MovePlan:
    """What to do about each position; queries the target, and changes nothing. `moved` has the
    positions that this restore set before, by their resource in `changes`. Raises
    ClusterUnreachable."""

    def mark(bound: Sequence[Standing]) -> list[Standing]:
        return [_mark_moved(standing, moved) for standing in bound]

    return plan_within_logs(admin, groups, standings, mark)


def _mark_moved(standing: Standing, moved: Mapping[str, str]) -> Standing:
    checkpoint = standing.checkpoint
    topic, partition = checkpoint.target
    to = moved.get(f"{checkpoint.group_id} {topic}-{partition}")
    synced = to is not None and standing.was_brought(int(to))
    return replace(standing, checkpoint=replace(checkpoint, synced=synced))


def restore_groups(admin: GroupAdmin, planned: MovePlan) -> Iterator[list[MoveResult]]:
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
