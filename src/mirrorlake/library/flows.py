"""The flows of a lake, and the base class of an open lake's parts. Tables come as DataFrames."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from mirrorlake.config.topology_file import nearest
from mirrorlake.errors import TopologyError
from mirrorlake.failover.divergence import divergence_of
from mirrorlake.library import html
from mirrorlake.library.answers import Rows
from mirrorlake.library.group_answers import Divergence
from mirrorlake.library.internals import Internals
from mirrorlake.library.store_refusals import in_words, raises_lake_errors

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

    from mirrorlake.library.tracing import Trace


class UnknownFlow(TopologyError, KeyError):
    """Raised for a flow that the topology file or, without one, the lake lacks. Also a KeyError."""

    __str__ = Exception.__str__  # KeyError would quote it


@raises_lake_errors
class OpenFlow:
    """One flow of a lake: its lag, its latency, and what became of its records.

    A flow that the lake does not know raises TopologyError.

        flow = lake.flows["east->west"]
        flow.lag(), flow.trace("orders", 0, 42).sentence
    """

    def __init__(self, internals: Internals, name: str) -> None:
        self._internals = internals
        self.name = name
        self.source, _, self.target = name.partition("->")

    def __repr__(self) -> str:
        return f"OpenFlow({self.name!r})"

    @property
    def enabled(self) -> bool | None:
        """Whether the flow is enabled in the topology file; None if there is none."""
        known = self._internals
        return known.topology.flows[self.name].enabled if known.has_topology else None

    def lag(self) -> "DataFrame":
        """Return the newest sample of each partition: how far source, stage and target are.

        Returns:
            The flow's rows of the view `replication_lag`: ends are offsets, `lag_records` counts
            records, `lag_seconds` is the time that the first record not yet at the target has
            waited, in seconds.
        """
        return self._rows("replication_lag")

    def latency(self) -> "DataFrame":
        """Return how late records were, per minute and topic.

        Returns:
            The flow's rows of the view `replication_latency`, in milliseconds from the records'
            timestamps: `landing_*_ms` to the stage, `replication_*_ms` to the target.
        """
        return self._rows("replication_latency")

    def staged_only(self) -> "DataFrame":
        """Return what the lake holds and the target never got: topic, partition, first_offset,
        last_offset (inclusive) and record_count."""
        return self._internals.tables.query("divergence_of", flow=self.name)

    def never_staged(self) -> "DataFrame":
        """Return what the source had at the newest sample and the lake had not: topic, partition,
        first_offset, last_offset (inclusive) and sampled_at."""
        return self._internals.tables.query("never_staged", flow=self.name)

    def divergence(self) -> Divergence:
        """Return the rows of `staged_only` and `never_staged`: what an unclean failover leaves
        behind. Raises LakeError if there is no lake."""
        self._internals.check_there()
        return Divergence.from_document(
            {"flow": self.name, **divergence_of(self._internals.reader, self.name)}
        )

    def trace(
        self,
        topic: str,
        partition: int | None = None,
        offset: int | None = None,
        *,
        key: str | None = None,
        since: "datetime | None" = None,
        reverse: bool = False,
    ) -> "Trace":
        """Return one record's life: written, landed, produced, read; what delayed it, and where it
        is now.

        Args:
            topic: named as at the source; with `reverse`, as at the target.
            partition, offset: of the record; with `reverse`, at the target.
            key: instead of these, the newest staged record with this key: text, or hexadecimal
                digits after 0x.
            since: with `key`, only records with a timestamp since then.
            reverse: partition and offset are those of the target.

        Raises:
            UnknownOffset: the flow has never seen the partition, or the target offset is not one of
                its records.
            InputError: no record has the key, or neither a place nor a key was given.
        """
        from mirrorlake.library.tracing import traced

        known = self._internals
        return traced(
            known, self.name, topic, partition, offset, key=key, since=since, reverse=reverse
        )

    def _rows(self, view: str) -> "DataFrame":
        frame = self._internals.tables.table(view)
        return frame.where(frame["flow"] == self.name)


class Flows(Mapping[str, OpenFlow]):
    """Flows by name: those of the topology file, in its order, or without one of the lake."""

    def __init__(self, internals: Internals) -> None:
        self._internals = internals

    def __getitem__(self, name: str) -> OpenFlow:
        names = self._names()
        if name not in names:
            raise UnknownFlow(f"there is no flow {name}{nearest(name, names)}")
        return OpenFlow(self._internals, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def enabled(self) -> list[OpenFlow]:
        """The enabled flows. Raises TopologyError if the topology file has none."""
        if self._internals.has_topology:
            self._internals.topology.require_flows()
        return [flow for flow in self.values() if flow.enabled]

    def __repr__(self) -> str:
        return f"Flows({', '.join(self._names())})"

    def _repr_html_(self) -> str:
        return html.table(
            Rows({"flow": flow.name, "enabled": flow.enabled} for flow in self.values())
        )

    @in_words
    def _names(self) -> list[str]:
        if self._internals.has_topology:
            return list(self._internals.topology.flows)
        return sorted(row["flow"] for row in self._internals.reader.table_rows("flow_status"))


class Opened:
    """An open lake's internals and its flows: the base class of its parts."""

    def __init__(self, internals: Internals) -> None:
        self.internals = internals

    @cached_property
    def flows(self) -> Flows:
        """The flows by name: those of the topology file, or without a file those in the lake."""
        return Flows(self.internals)
