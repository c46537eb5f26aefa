"""What a native landing query reads: handed to Spark's tasks, or done by the driver itself. Needs
no Spark."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirrorlake.offsets.positions import TopicAndPartition

if (
    TYPE_CHECKING
):  # three processes import this before a query begins, and each needs a part of the rest, or none
    import pyarrow as pa

    from mirrorlake.config.topology import Landing
    from mirrorlake.landing.source_comparison import LandingPlan


@dataclass(frozen=True)
class LandJob:
    """What a query reads, and how. `client` holds secrets: it travels with the pickled source,
    never as an option.

    `starts` and `final` are offsets by partition; None reads on for ever. `final_noted` is what the
    batch notes that comes to `final` (offsets/as_of.py). `waiting` are partitions that wait for
    others, `waiting_seconds` at most. `directory` and `schema` are those of the table `records`.
    """

    alias: str
    client: Mapping[str, str | int | bool]
    starts: Mapping[TopicAndPartition, int]
    generations: Mapping[TopicAndPartition, int]
    final: Mapping[TopicAndPartition, int] | None
    max_records: int
    tasks: int
    waiting: frozenset[TopicAndPartition]
    waiting_seconds: float
    directory: str
    schema: "pa.Schema"
    checkpoint: str
    final_noted: str | None = None

    @staticmethod
    def from_plan(
        plan: "LandingPlan",
        client: Mapping[str, str | int | bool],
        landing: "Landing",
        directory: Path,
        checkpoint: Path,
        waiting: frozenset[TopicAndPartition],
        waiting_seconds: float,
    ) -> "LandJob":
        """The job of a plan. `directory` is the lake's."""
        from mirrorlake.lake.definitions import definition

        return LandJob(
            alias=plan.alias,
            client=dict(client),
            starts=plan.starts,
            generations=plan.generations,
            final=None,
            max_records=landing.max_records_per_batch,
            tasks=landing.files_per_batch,
            waiting=waiting,
            waiting_seconds=waiting_seconds,
            directory=str(directory / "records"),
            schema=definition("records").rows,
            checkpoint=str(checkpoint),
        )

    def limit(self) -> int | None:
        """How much a batch of the cluster may hold (`landing/pace.py`), as far as batches before
        told."""
        kept = self._kept("pace")
        return None if kept is None else int(kept)

    def keep_limit(self, limit: int) -> None:
        """Keep it, for the next batches and for queries to come."""
        self._keep("pace", limit)

    def record_bytes(self) -> dict[str, float]:
        """How large the records of each topic are, bytes as Arrow has them, as far as batches
        before told."""
        return dict(self._kept("record-bytes") or {})

    def keep_record_bytes(self, sizes: Mapping[str, float]) -> None:
        """Keep them, for the next batches and for queries to come."""
        self._keep("record-bytes", sizes)

    def _file(self, what: str) -> Path:
        return Path(self.checkpoint).parent.parent / f"{self.alias}-{what}.json"

    def _kept(self, what: str) -> Any:
        """What was kept; None where nothing was, or it is damaged: it only makes the next batch the
        right size."""
        try:
            return json.loads(self._file(what).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def _keep(self, what: str, value: object) -> None:
        path = self._file(what)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".new").write_text(json.dumps(value), encoding="utf-8")
        path.with_suffix(".new").replace(path)

    def __repr__(self) -> str:
        return f"LandJob({self.alias}, {len(self.starts)} partitions)"


def document(offsets: Mapping[TopicAndPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets as Spark's own Kafka source writes them into a checkpoint."""
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return by_topic
