"""What happened, for operators: rows of `changes`, `incidents` and `clusters`."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

import pyarrow as pa

from mirrorlake.core.topic_plan import TopicPlan
from mirrorlake.errors import MirrorlakeError
from mirrorlake.lake.lake import Lake, arrow_table

_TIME = pa.timestamp("us", tz="UTC")
_CHANGES = pa.schema(
    [("flow", pa.string()), ("at", _TIME)]
    + [(name, pa.string()) for name in ("kind", "resource", "before", "after", "outcome", "error")]
)
_INCIDENTS = pa.schema(
    [
        ("flow", pa.string()),
        ("at", _TIME),
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("detail", pa.string()),
    ]
)


class Journal:
    """Appends to the operators' tables of a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def topics(self, flow: str, plans: Sequence[TopicPlan]) -> None:
        """Record what was done about topics, and what was refused."""
        now = datetime.now(timezone.utc)
        kinds = {"create": "topic", "refuse": "topic", "add_partitions": "partitions"}
        rows = [
            {
                "flow": flow,
                "at": now,
                "kind": kinds[plan.action],
                "resource": plan.target_topic,
                "after": f"partitions={plan.partitions}, factor={plan.factor}",
                "outcome": "refused" if plan.action == "refuse" else "done",
                "error": plan.reason or None,
            }
            for plan in plans
        ]
        self._lake.append("changes", arrow_table(rows, _CHANGES))

    def incident(self, flow: str, kind: str, error: BaseException) -> None:
        """Record what an operator must know; one of the same kind and place that is open is not repeated."""
        facts = error.facts if isinstance(error, MirrorlakeError) else {}
        row = {
            "flow": flow,
            "at": datetime.now(timezone.utc),
            "kind": kind,
            "detail": str(error).strip().splitlines()[0][:2000],
            **{name: facts.get(name) for name in ("topic", "partition", "first_offset", "last_offset")},
        }
        known = self._lake.query(
            "same_incident", flow=flow, kind=kind, topic=row["topic"], partition=row["partition"]
        ).collect()
        if known[0]["open"] == 0:
            self._lake.append("incidents", arrow_table([row], _INCIDENTS))

    def clusters(self, ids: Mapping[str, str]) -> None:
        """Record which cluster each alias was, now."""
        for alias, cluster_id in ids.items():
            self._lake.query("cluster_seen", alias=alias, cluster_id=cluster_id)

    def restarted(self, flow: str) -> None:
        """A flow came through again: what stopped it earlier is resolved."""
        self._lake.query("resolve_incidents", flow=flow)
