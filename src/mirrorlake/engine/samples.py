"""Samples of where every partition of a flow is: rows of `positions`."""

from datetime import datetime, timezone

import pyarrow as pa

from mirrorlake.core.survey import Key
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.flow_worker import Snapshot
from mirrorlake.engine.targets import TargetTopics
from mirrorlake.lake.lake import Lake, arrow_table

_POSITIONS = pa.schema(
    [
        ("flow", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("sampled_at", pa.timestamp("us", tz="UTC")),
        *((name, pa.int64()) for name in ("source_start", "source_end", "staged_end", "produced_end", "target_end")),
        ("lag_records", pa.int64()),
        ("lag_seconds", pa.float64()),
        ("target_topic", pa.string()),
    ]
)


def passed(snapshot: Snapshot, targets: TargetTopics, key: Key) -> tuple[int, int]:
    """How far a partition is landed and how far it is produced, as of a look.

    What a look found nothing behind has been produced: the flow has passed the transaction markers there too.
    """
    floor = snapshot.floors.get(key, 0)
    covered = max(floor, snapshot.covered.get(key, floor))
    waits = key in snapshot.held or key[0] in snapshot.left_out or targets.produced_topic(key[0]) is None
    return covered, covered if snapshot.caught_up and not waits else floor


def sample_positions(
    lake: Lake, connections: Connections, flow: ResolvedFlow, targets: TargetTopics, snapshot: Snapshot
) -> None:
    """Append one row of `positions` per partition of a flow, as of a look of its producer."""
    source, target = connections.admin(flow.source), connections.admin(flow.target)
    topics = {name: info for name, info in source.topics().items() if targets.selection.selects(name)}
    keys = [(name, partition) for name, info in topics.items() for partition in range(info.partitions)]
    starts, ends = source.start_offsets(keys), source.end_offsets(keys)
    names = {name: targets.remote_topic(name) or "" for name in topics}
    there = target.topics()
    remote = [(names[t], p) for t, p in keys if names[t] in there and p < there[names[t]].partitions]
    target_ends = target.end_offsets(remote)
    now = datetime.now(timezone.utc)
    rows = []
    for topic, partition in keys:
        covered, produced = passed(snapshot, targets, (topic, partition))
        lag = max(0, ends[topic, partition] - max(produced, starts[topic, partition]))
        rows.append(
            {
                "flow": flow.name,
                "topic": topic,
                "partition": partition,
                "sampled_at": now,
                "source_start": starts[topic, partition],
                "source_end": ends[topic, partition],
                "staged_end": covered,
                "produced_end": produced,
                "target_end": target_ends.get((names[topic], partition)),
                "lag_records": lag,
                "lag_seconds": 0.0 if lag == 0 else None,
                "target_topic": names[topic] or None,
            }
        )
    lake.append("positions", arrow_table(rows, _POSITIONS))
