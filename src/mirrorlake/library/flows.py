"""The flows of a lake, and what can be asked of one; and what each part of an open lake stands on.
What is a table is a DataFrame."""

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
from mirrorlake.library.store_refusals import in_words, store_in_words

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

    from mirrorlake.library.tracing import Trace


class UnknownFlow(TopologyError, KeyError):
    """Raised for a flow that is neither in the topology file nor, without one, in the lake; a
    KeyError too."""

    __str__ = Exception.__str__  # KeyError would put it into quotes


@store_in_words
class OpenFlow:
    """One flow of a lake, what became of its records, and how late they were.

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
        """Whether the topology file says so; None where the lake was opened without one."""
        known = self._internals
        return known.topology.flows[self.name].enabled if known.has_topology else None

    def lag(self) -> "DataFrame":
        """The newest sample of each partition: how far source, stage and target are.

        Returns:
            The flow's rows of the view `replication_lag`: ends are offsets, `lag_records` records,
            `lag_seconds` how long the first record that is not on the target has waited, in
            seconds.
        """
        return self._rows("replication_lag")

    def latency(self) -> "DataFrame":
        """How late records were, for each minute and topic.

        Returns:
            The flow's rows of the view `replication_latency`: `landing_*_ms` until the stage,
            `replication_*_ms` until the target, both from the records' timestamps, in milliseconds.
        """
        return self._rows("replication_latency")

    def staged_only(self) -> "DataFrame":
        """What the lake holds and the target never got: topic, partition, first_offset, last_offset
        (inclusive) and record_count."""
        return self._internals.tables.query("divergence_of", flow=self.name)

    def never_staged(self) -> "DataFrame":
        """What the source had at the newest sample and the lake had not: topic, partition,
        first_offset, last_offset (inclusive) and sampled_at."""
        return self._internals.tables.query("never_staged", flow=self.name)

    def divergence(self) -> Divergence:
        """What `staged_only` and `never_staged` find, as rows: what an unclean failover leaves
        behind. Raises LakeError where there is no lake."""
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
        """One record's life: written, landed, produced, read; what held it up, and where it is now.

        Args:
            topic: named as at the source; with `reverse`, as at the target.
            partition, offset: of the record; with `reverse`, at the target.
            key: instead of them, the newest staged record with this key: text, or hexadecimal
                digits behind 0x.
            since: with a key, only records with a timestamp since.
            reverse: partition and offset are those of the target.

        Raises:
            UnknownOffset: the flow has never seen the partition, or the target offset is no record
                of it.
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
    """Flows by name: those of the topology file, in its order; without one, those that the lake
    knows."""

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
        """Those that are enabled. Raises TopologyError where none of the topology file is."""
        if self._internals.has_topology:
            self._internals.topology.some_flows()
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
    """A lake as it was opened, and its flows."""

    def __init__(self, internals: Internals) -> None:
        self.internals = internals

    @cached_property
    def flows(self) -> Flows:
        """The flows by name: those of the topology file, or without one those that the lake
        knows."""
        return Flows(self.internals)
