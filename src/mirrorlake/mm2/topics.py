"""MirrorMaker 2's topics (KIP-382, KIP-690, KIP-949; docs/mm2.md, "Topics of its own"). Pure."""

import re

from mirrorlake.config.topology import ResolvedFlow

INTERNAL_PARTITIONS = 1
"""Each of them has one partition: MirrorMaker 2's clients read partition 0 and no other."""
INTERNAL_CONFIGS = {"cleanup.policy": "compact"}
"""Configs that they are made with."""
INTERNAL_FACTOR = 3
"""Their replication factor where the topology file gives none."""


def checkpoints_topic(flow: ResolvedFlow) -> str:
    """The target's topic with a flow's checkpoints, whatever the naming policy."""
    separator = flow.naming.internal_separator
    return f"{flow.source}{separator}checkpoints{separator}internal"


def offset_syncs_place(flow: ResolvedFlow) -> tuple[str, str]:
    """The cluster and topic of a flow's offset syncs (KIP-716); the name has the *other* alias."""
    separator = flow.naming.internal_separator
    alias, other = flow.source, flow.target
    if flow.settings.offset_syncs_topic_location == "target":
        alias, other = other, alias
    return alias, f"mm2-offset-syncs{separator}{other}{separator}internal"


def offset_syncs_separator(name: str, other: str) -> str | None:
    """The separator in a topic's name, if it is the offset syncs topic of `other`; else None."""
    match = re.fullmatch(rf"mm2-offset-syncs(.{{1,16}}){re.escape(other)}\1internal", name)
    return None if match is None else match[1]


def worker_topic_of(source: str) -> str:
    """The topic on the target where MirrorMaker 2's own workers store their tasks' progress, once a
    minute if there is any, as with heartbeats there always is. In a Connect cluster it may have any
    name."""
    return f"mm2-offsets.{source}.internal"


def internal_factor(asked: int | None, brokers: int) -> int:
    """An internal topic's replication factor: as given or INTERNAL_FACTOR, at most one a broker."""
    return max(1, min(asked or INTERNAL_FACTOR, brokers))
