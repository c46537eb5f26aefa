"""Samples of where every partition of a flow is: rows of `positions`."""

import json
from collections.abc import Mapping
from datetime import datetime, timezone

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.targets import TargetTopics
from mirrorlake.lake.lake import Lake, arrow_table
from mirrorlake.produce.flow import FlowProducer

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


def sample_positions(
    lake: Lake,
    connections: Connections,
    flow: ResolvedFlow,
    targets: TargetTopics,
    producer: FlowProducer,
    staged: Mapping[tuple[str, int], int],
    caught_up: bool,
) -> None:
    """Append one row of `positions` per partition of a flow.

    `staged` is how far landing has covered each partition, transaction markers included. `caught_up` says that all
    which was staged by then has been produced: the flow has passed the markers too.
    """
    source, target = connections.admin(flow.source), connections.admin(flow.target)
    topics = {name: info for name, info in source.topics().items() if targets.selection.selects(name)}
    keys = [(name, partition) for name, info in topics.items() for partition in range(info.partitions)]
    starts, ends = source.start_offsets(keys), source.end_offsets(keys)
    names = {name: targets.policy.remote_topic(flow.source, name) for name in topics}
    there = target.topics()
    remote = [(names[t], p) for t, p in keys if names[t] in there and p < there[names[t]].partitions]
    target_ends = target.end_offsets(remote)
    now = datetime.now(timezone.utc)
    rows = []
    for topic, partition in keys:
        floor = producer.floor(topic, partition).source
        covered = max(floor, staged.get((topic, partition), floor))
        produced = covered if caught_up else floor
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
                "target_topic": names[topic],
            }
        )
    lake.append("positions", arrow_table(rows, _POSITIONS))


def landed_ends(query: StreamingQuery) -> dict[tuple[str, int], int]:
    """How far a landing query has covered each partition: its end offsets, markers included."""
    progress = query.lastProgress
    if progress is None:
        return {}
    end = json.loads(progress.json)["sources"][0]["endOffset"] or {}
    if isinstance(end, str):  # Spark Connect hands the offsets over as a JSON text within the JSON
        end = json.loads(end)
    return {(topic, int(partition)): offset for topic, parts in end.items() for partition, offset in parts.items()}
