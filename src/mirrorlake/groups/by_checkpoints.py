"""Where groups of a cluster that does not answer stand, by what the flow's last checkpoints say."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from mirrorlake.groups.checkpoint_plan import (
    EXCLUDED,
    NAMELESS,
    OTHER_KIND,
    Checkpoint,
    GroupPartition,
    leaves_out,
    selects_group,
)
from mirrorlake.groups.checkpoint_table import left_out_groups, newest_checkpoints, recently_left
from mirrorlake.groups.moves import Standing, standing_by_checkpoint
from mirrorlake.groups.named_groups import refuse_own, refuse_unknown
from mirrorlake.groups.readable import bounded, readable_positions
from mirrorlake.groups.route_sides import sides_of
from mirrorlake.groups.shared_topics import Route
from mirrorlake.lake.other_logs import source_generations
from mirrorlake.lake.translate import translate_all
from mirrorlake.offsets.positions import Translated


class CheckpointedGroups(NamedTuple):
    """Standings of groups, positions without a counterpart at the goal, and groups that are not
    moved, with the reason."""

    standings: tuple[Standing, ...]
    lost: Mapping[GroupPartition, int]
    not_moved: Mapping[str, str]


def groups_by_checkpoints(
    route: Route, named: Sequence[str] | None, gone: str
) -> CheckpointedGroups:
    """Where groups stand by the last checkpoints, since their cluster is `gone`, for that reason;
    only the `named` ones, None for all. Raises InputError for a named group without any."""
    lake, flow = route.lake, route.flow
    newest = newest_checkpoints(lake, flow.name)
    if named is not None:
        refuse_own(named)
        refuse_unknown(named, {key[0] for key in newest}, "the table checkpoints")
    chosen = {
        key: (checkpoint, at)
        for key, (checkpoint, at) in newest.items()
        if (
            key[0] in named
            if named is not None
            else selects_group(flow.settings, key[0]) and not checkpoint.is_gone
        )
    }
    known = source_generations(lake, flow.name)
    over = {
        key: checkpoint
        for key, (checkpoint, _) in chosen.items()
        if checkpoint.has_counterpart
        and known.is_gone(checkpoint.place, checkpoint.source_position)
    }
    asked = {
        place: (checkpoint.topic, checkpoint.partition, checkpoint.source_position)
        for place, (checkpoint, _) in chosen.items()
    }
    sides = sides_of(route, gone)
    translated = readable_positions(frozenset(asked.values()), sides)
    noted = {
        # A partition that was never sampled (no records, position 0) still has its checkpoint.
        place: Translated(
            checkpoint.target_topic,
            checkpoint.partition,
            checkpoint.target_position,
            checkpoint.is_exact,
            ahead=False,
        )
        for place, (checkpoint, _) in chosen.items()
        if asked[place] not in translated and checkpoint.has_counterpart and not checkpoint.is_over
    }
    there = bounded({**noted, **_as_written(route, over)}, sides)
    standings, lost = [], {}
    for place, (checkpoint, at) in sorted(chosen.items()):
        leads_to = there.get(place, translated.get(asked[place]))
        if leads_to is not None:
            standings.append(standing_by_checkpoint(checkpoint, leads_to, at))
        else:
            lost[place] = checkpoint.source_position
    not_moved = _noted_as_left(route, newest) if named is None else {}
    return CheckpointedGroups(tuple(standings), lost, not_moved)


def _noted_as_left(
    route: Route, newest: Mapping[GroupPartition, tuple[Checkpoint, datetime]]
) -> dict[str, str]:
    """Groups that no command moves, as far as the flow has noted them, and those that have lost
    their positions of late."""
    settings, noted = route.flow.settings, left_out_groups(route.lake, route.flow.name)
    reasons = {
        group: why
        for why in (OTHER_KIND, NAMELESS)
        for group in noted[why]
        if not group or selects_group(settings, group)
    }
    reasons |= {group: EXCLUDED for group in noted[EXCLUDED] if leaves_out(settings, group)}
    return dict(sorted(reasons.items())) | recently_left(newest, partial(selects_group, settings))


def _as_written(
    route: Route, checkpoints: Mapping[GroupPartition, Checkpoint]
) -> dict[GroupPartition, Translated]:
    """Translate positions in logs that the source no longer has: as their checkpoints say, or to
    the start of a new target topic. How far the groups read since is not known."""
    starts = {
        key: (
            checkpoint.target_topic,
            checkpoint.partition,
            0 if checkpoint.is_over else checkpoint.target_position,
        )
        for key, checkpoint in checkpoints.items()
    }
    ends = translate_all(route.lake, route.flow.name, starts.values(), reverse=True)
    again = {
        key: max(0, ends[start].end - start[2]) if start in ends else 0
        for key, start in starts.items()
    }
    return {
        key: Translated(
            *starts[key],
            checkpoint.is_exact and not checkpoint.is_over,
            ahead=again[key] > 0,
            again=again[key],
        )
        for key, checkpoint in checkpoints.items()
    }
