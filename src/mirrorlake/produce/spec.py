"""What producing a flow needs to know."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mirrorlake.errors import TargetRefused
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.stage import Selected
from mirrorlake.produce.provenance import Provenance


def name_at_target(lake: Lake, flow: str) -> str:
    """What a flow is called on its target: the group of its positions, and what its transactional ids begin with."""
    return f"mirrorlake-{lake.lake_id}-{flow}"


@dataclass(frozen=True)
class FlowSpec:
    """One flow. `client` and `producer` are rendered librdkafka settings with secrets.

    `remote_topic` gives None for a topic that is not to be produced (not selected, paused, refused by its name);
    `selection_key` and `left_out` say the same in words, so that a change is noticed. `held` are partitions that wait
    for an operator, `skipped` ranges of offsets (inclusive) that one gave up.
    """

    name: str
    selected: Selected
    remote_topic: Callable[[str], str | None]
    client: Mapping[str, str | int | bool] = field(repr=False)
    producer: Mapping[str, str | int | bool] = field(repr=False)
    shard_count: int
    transactional: bool
    max_records: int = 2_000_000
    reader: str = "auto"
    selection_key: str = ""
    left_out: tuple[str, ...] = ()
    held: frozenset[tuple[str, int]] = frozenset()
    skipped: Mapping[tuple[str, int], tuple[tuple[int, int], ...]] = field(default_factory=dict)
    provenance: Provenance | None = None
    on_refused: Callable[[TargetRefused], None] | None = None

    def fingerprint(self) -> str:
        """Names what is left out of the stage: progress by commits counts only for the same one."""
        held = (f"{topic}-{partition}" for topic, partition in sorted(self.held))
        parts = (self.selection_key, *self.left_out, *held)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
