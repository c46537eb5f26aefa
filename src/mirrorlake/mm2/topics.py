"""MirrorMaker 2's own topics: their names and shapes (KIP-382, KIP-690, KIP-949; docs/mm2.md,
"Topics of its own"). Pure."""

import re

from mirrorlake.config.flow import Flow

INTERNAL_PARTITIONS = 1
"""Each of them has one partition: MirrorMaker 2's clients read partition 0 and no other."""
INTERNAL_CONFIGS = {"cleanup.policy": "compact"}
"""Configs that they are made with."""
INTERNAL_FACTOR = 3
"""Their replication factor where the topology file gives none."""


def checkpoints_topic(source: str, settings: Flow) -> str:
    """Name of the topic on a flow's target that holds the checkpoints of its `source`, whatever the
    naming policy."""
    separator = _internal_separator(settings)
    return f"{source}{separator}checkpoints{separator}internal"


def offset_syncs_topic(other: str, settings: Flow) -> str:
    """Name of MirrorMaker 2's topic of offset syncs, which carries the *other* cluster's alias."""
    separator = _internal_separator(settings)
    return f"mm2-offset-syncs{separator}{other}{separator}internal"


def offset_syncs_place(source: str, target: str, settings: Flow) -> tuple[str, str]:
    """The cluster and the name of the topic of a flow's offset syncs (KIP-716)."""
    alias, other = (
        (target, source) if settings.offset_syncs_topic_location == "target" else (source, target)
    )
    return alias, offset_syncs_topic(other, settings)


def offset_syncs_separator(name: str, other: str) -> str | None:
    """What stands between the parts of a name, if it is that of a topic of offset syncs that
    carries `other`."""
    match = re.fullmatch(rf"mm2-offset-syncs(.{{1,16}}){re.escape(other)}\1internal", name)
    return None if match is None else match[1]


def internal_factor(asked: int | None, brokers: int) -> int:
    """Replication factor to make one with: as asked for, else INTERNAL_FACTOR; never more than
    there are brokers."""
    return max(1, min(asked or INTERNAL_FACTOR, brokers))


def _internal_separator(settings: Flow) -> str:
    """Text within internal names; without the setting it is a dot, as it was before KIP-949."""
    enabled = settings.replication_policy_internal_topic_separator_enabled
    return settings.replication_policy_separator if enabled else "."
