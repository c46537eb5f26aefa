"""What happened, for operators: rows of `changes` and `clusters`, and through `incidents` what they must know."""

import json
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

import pyarrow as pa

from mirrorlake.core.changes import Change
from mirrorlake.core.topic_plan import TopicPlan
from mirrorlake.lake.incidents import Incidents
from mirrorlake.lake.lake import Lake, arrow_table

_TIME = pa.timestamp("us", tz="UTC")
_CHANGES = pa.schema(
    [("flow", pa.string()), ("at", _TIME)]
    + [(name, pa.string()) for name in ("kind", "resource", "before", "after", "outcome", "error")]
)


class Journal:
    """Appends to the operators' tables of a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.incidents = Incidents(lake)
        self._histories: dict[tuple[str, str], list[Change]] = {}
        self._history_use = threading.RLock()

    def record(self, flow: str, changes: Sequence[Change]) -> None:
        """Record what control did, or was refused (`core.changes.ChangeLog`)."""
        now = datetime.now(timezone.utc)
        rows = [{"flow": flow, "at": now, **vars(change)} for change in changes]
        self._lake.append("changes", arrow_table(rows, _CHANGES))
        with self._history_use:
            for change in changes:
                if (flow, change.kind) in self._histories:
                    self._histories[flow, change.kind].append(change)

    def history(self, flow: str, kind: str) -> Sequence[Change]:
        """All changes of a kind that a flow recorded, oldest first.

        Read from the lake once; what other processes record for the flow afterwards is not seen.
        """
        with self._history_use:
            if (flow, kind) not in self._histories:
                rows = self._lake.query("changes_of", flow=flow, kind=kind).collect()
                self._histories[flow, kind] = [Change(**row.asDict()) for row in rows]
            return list(self._histories[flow, kind])

    def topics(self, flow: str, plans: Sequence[TopicPlan]) -> None:
        """Record what was done about topics, and what was refused."""
        kinds = {"create": "topic", "refuse": "topic", "add_partitions": "partitions"}
        self.record(
            flow,
            [
                Change(
                    kinds[plan.action],
                    plan.target_topic,
                    None,
                    f"partitions={plan.partitions}, factor={plan.factor}",
                    "refused" if plan.action == "refuse" else "done",
                    plan.reason or None,
                )
                for plan in plans
            ],
        )

    def clusters(self, ids: Mapping[str, str]) -> None:
        """Record which cluster each alias was, now."""
        self._lake.change("clusters_seen", ids=json.dumps(dict(ids)))
