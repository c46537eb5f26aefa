"""The groups with positions in the copies of a wave's topics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mirrorlake.errors import InputError
from mirrorlake.groups.checkpoint_plan import GroupPartition
from mirrorlake.kafka.groups import GroupAdmin, GroupPositions
from mirrorlake.migrate.copies import EVERY_NAME, Copies, Wave
from mirrorlake.migrate.locating import Pair
from mirrorlake.naming.at_target import is_own_group
from mirrorlake.offsets.positions import Committed


@dataclass(frozen=True)
class WaveGroups:
    """The groups of a wave: their states and the positions to move. `lost` are positions in
    partitions that only the copy being left has (group, topic, partition); `unbegun` are partitions
    that only the other copy has and where the group has no position; `stranded` are groups with the
    copies they read of topics that the flow does not have; `others` are no consumer groups."""

    states: Mapping[str, str]
    positions: Mapping[tuple[str, Pair], Committed]
    lost: Sequence[GroupPartition]
    unbegun: Sequence[GroupPartition]
    stranded: Sequence[tuple[str, str]]
    errors: Mapping[str, str]
    unreported: tuple[str, ...]
    others: Sequence[str] = ()


def groups_of(target: str, admin: GroupAdmin, wave: Wave, copies: Copies) -> WaveGroups:
    """The target's groups with positions in the copies that the wave leaves."""
    listing = admin.listing()
    others = sorted(filter(wave.names_group, admin.other_kinds(listing) or ()))
    named = [name for name in listing.states if wave.names_group(name) and not is_own_group(name)]
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
        others=others,
    )
