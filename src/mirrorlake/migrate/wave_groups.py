"""The groups that stand in the copies of a wave's topics, and their positions there."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mirrorlake.errors import InputError
from mirrorlake.groups.checkpoint_plan import GroupPartition
from mirrorlake.kafka.groups import GroupAdmin, GroupPositions
from mirrorlake.migrate.copies import Copies
from mirrorlake.migrate.locating import Pair
from mirrorlake.migrate.wave import EVERY_NAME, Wave
from mirrorlake.naming.at_target import is_own_group
from mirrorlake.offsets.positions import Committed


@dataclass(frozen=True)
class WaveGroups:
    """Groups of a wave: states by group, and the positions that are to be moved; `lost` are those
    in partitions that only the copy which they leave has: group, topic and partition. `unbegun` are
    partitions that only the other copy has, and in which the group has no position. `stranded` are
    groups, and the copies that they stand in, of which the flow has none."""

    states: Mapping[str, str]
    positions: Mapping[tuple[str, Pair], Committed]
    lost: Sequence[GroupPartition]
    unbegun: Sequence[GroupPartition]
    stranded: Sequence[tuple[str, str]]
    errors: Mapping[str, str]
    unreported: tuple[str, ...]


def groups_of(target: str, admin: GroupAdmin, wave: Wave, copies: Copies) -> WaveGroups:
    """The groups on the target that have positions in the copies which they leave."""
    listing = admin.listing()
    named = [
        name
        for name in listing.states
        if re.fullmatch(wave.groups, name) and not is_own_group(name)
    ]
    if not named and not listing.errors and wave.groups != EVERY_NAME:
        raise InputError(f"cluster {target} has no group that --groups {wave.groups} matches")
    committed = admin.positions(named) if named else GroupPositions({})
    by_origin = {pair.own if wave.rollback else pair.copy: pair for pair in copies.pairs}
    positions = {
        (group, by_origin[topic, partition]): position
        for (group, topic, partition), position in sorted(committed.by_partition.items())
        if (topic, partition) in by_origin
    }
    topics = {topic for topic, _ in by_origin}
    lost = [
        key
        for key in sorted(committed.by_partition)
        if key[1] in topics and key[1:] not in by_origin
    ]
    standing = {(group, topic) for group, topic, _ in committed.by_partition}
    unbegun = [
        (group, *place)
        for group, topic in sorted(standing)
        for place in copies.beyond.get(topic, ())
        if (group, *place) not in committed.by_partition
    ]
    stranded = sorted(place for place in standing if place[1] in copies.unshown)
    having = {group for group, _ in positions} | committed.errors.keys()
    states = {group: state for group, state in listing.states.items() if group in having}
    return WaveGroups(
        states,
        positions,
        lost=lost,
        unbegun=unbegun,
        stranded=stranded,
        errors=committed.errors,
        unreported=listing.errors,
    )
