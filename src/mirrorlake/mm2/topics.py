"""MirrorMaker 2's own topics: their names and shapes (KIP-382, KIP-690, KIP-949; docs/mm2.md,
"Topics of its own"). Pure."""

import re

from mirrorlake.config.topology import ResolvedFlow

INTERNAL_PARTITIONS = 1
"""Each of them has one partition: MirrorMaker 2's clients read partition 0 and no other."""
INTERNAL_CONFIGS = {"cleanup.policy": "compact"}
"""Configs that they are made with."""
INTERNAL_FACTOR = 3
"""Their replication factor where the topology file gives none."""


def checkpoints_topic(flow: ResolvedFlow) -> str:
    """Name of the topic on a flow's target that holds the checkpoints of its source, whatever the
    naming policy."""
    separator = flow.naming.internal_separator
    return f"{flow.source}{separator}checkpoints{separator}internal"


def offset_syncs_place(flow: ResolvedFlow) -> tuple[str, str]:
    """The cluster and the name of the topic of a flow's offset syncs (KIP-716); the name carries
    the *other* cluster's alias."""
    separator = flow.naming.internal_separator
    alias, other = flow.source, flow.target
    if flow.settings.offset_syncs_topic_location == "target":
        alias, other = other, alias
    return alias, f"mm2-offset-syncs{separator}{other}{separator}internal"


def offset_syncs_separator(name: str, other: str) -> str | None:
    """What stands between the parts of a name, if it is that of a topic of offset syncs that
    carries `other`."""
    match = re.fullmatch(rf"mm2-offset-syncs(.{{1,16}}){re.escape(other)}\1internal", name)
    return None if match is None else match[1]


def worker_topic_of(source: str) -> str:
    """Where, on the target, the workers of MirrorMaker 2 itself note how far their tasks are, once
    a minute where there is something to note: of heartbeats there is. In a Connect cluster it has
    any name."""
    return f"mm2-offsets.{source}.internal"


def internal_factor(asked: int | None, brokers: int) -> int:
    """Replication factor to make one with: as asked for, else INTERNAL_FACTOR; never more than
    there are brokers."""
    return max(1, min(asked or INTERNAL_FACTOR, brokers))
