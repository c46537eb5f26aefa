"""Notebook 02: from a latency spike to the partition, the batch and the records."""

from dataclasses import dataclass

import altair as alt
import pyarrow as pa

from mirrorlake.errors import InputError
from mirrorlake.notebook import charts
from mirrorlake.notebook.host import Notebook
from mirrorlake.notebook.inline import plain_rows


@dataclass(frozen=True)
class Spike:
    """A minute (a text with a zone), and a partition and batch in it; `how` says why these. p99 is
    the partition's in that minute."""

    how: str
    minute: str
    p99_ms: int | None
    topic: str
    partition: int
    batch_id: int

    def __str__(self) -> str:
        p99 = "no latency is known" if self.p99_ms is None else f"p99 {self.p99_ms:,} ms"
        return (
            f"{self.how}: {self.minute}, {p99}, in {self.topic}-{self.partition}, batch "
            f"{self.batch_id}"
        )


def over_time(nb: Notebook) -> alt.Chart:
    """Percentiles per minute, of the widget's topic or of all."""
    table = nb.query("latency_minutes", flow=nb.flow, topic=nb.widget("topic"), **nb.span)
    names = {"replication_p50_ms": "p50", "replication_p95_ms": "p95", "replication_p99_ms": "p99"}
    return charts.lines(table, "minute", names, title=f"{nb.flow}: replication latency", unit="ms")


def find_spike(nb: Notebook) -> Spike:
    """Find where to look: the batch of the widgets' record, or the slowest batch of the widgets'
    minute, or else of the minute with the highest p99 in the time span. Raises InputError if
    nothing was produced."""
    if nb.widget("offset"):
        return _of_record(nb, int(nb.number("partition", 0)), int(nb.number("offset", 0)))
    if nb.widget("minute"):
        (asked,) = nb.rows("asked_minute", minute=nb.widget("minute"))
        if asked["minute"] is None:
            raise InputError(
                f"the widget minute holds {nb.widget('minute')}, which is no time as 2026-11-21 "
                "23:47"
            )
        return _latest(nb, "the minute that was asked for", asked["minute"])
    rows = nb.rows("worst_minute", flow=nb.flow, topic=nb.widget("topic"), **nb.span)
    if not rows or rows[0]["replication_p99_ms"] is None:
        raise InputError(
            f"flow {nb.flow} has no latency between {nb.span['since']} and {nb.span['until']}; "
            "give another since and until, or an empty topic"
        )
    return _latest(nb, "the worst minute", rows[0]["minute"])


def _of_record(nb: Notebook, partition: int, offset: int) -> Spike:
    place = {"flow": nb.flow, "topic": nb.topic, "partition": partition}
    rows = nb.rows("batch_of_record", offset=offset, **place)
    if not rows:
        raise InputError(
            f"the map has no batch of {nb.topic}-{partition} offset {offset}: it is not at the "
            "target, or its row was merged; `mirrorlake trace` and notebook 07 show what is known "
            "of it"
        )
    minute, batch = rows[0]["minute"], rows[0]["batch_id"]
    beside = plain_rows(_batches(nb, nb.topic, partition, minute))
    p99 = next((row["replication_p99_ms"] for row in beside if row["batch_id"] == batch), None)
    return Spike(
        f"the batch of offset {offset}",
        minute,
        p99,
        topic=nb.topic,
        partition=partition,
        batch_id=batch,
    )


def _latest(nb: Notebook, how: str, minute: str) -> Spike:
    """The slowest partition of a minute (or the widget's), and its slowest batch."""
    rows = plain_rows(partitions(nb, minute))
    if nb.widget("partition"):
        rows = [row for row in rows if row["partition"] == int(nb.number("partition", 0))]
    if not rows:
        raise InputError(
            f"flow {nb.flow} produced nothing of what is looked at in the minute of {minute}"
        )
    first = rows[0]
    # never empty: the minute has rows of these batches
    batch = plain_rows(_batches(nb, first["topic"], first["partition"], minute))[0]
    p99 = first["replication_p99_ms"]
    return Spike(
        how,
        minute,
        p99,
        topic=first["topic"],
        partition=first["partition"],
        batch_id=batch["batch_id"],
    )


def partitions(nb: Notebook, minute: str) -> pa.Table:
    """One minute, partition by partition."""
    return nb.query("partitions_of_minute", flow=nb.flow, topic=nb.widget("topic"), minute=minute)


def partition_bars(nb: Notebook, minute: str) -> alt.Chart:
    """The slowest partitions of a minute: until landed, and until on the target."""
    names = {"landing_p99_ms": "until landed", "replication_p99_ms": "until on the target"}
    return charts.bars(
        partitions(nb, minute).slice(0, 15), ["topic", "partition"], names, f"p99 at {minute}", "ms"
    )


def batches(nb: Notebook, spike: Spike) -> pa.Table:
    """The batches of the spike's partition in its minute."""
    return _batches(nb, spike.topic, spike.partition, spike.minute)


def _batches(nb: Notebook, topic: str, partition: int, minute: str) -> pa.Table:
    return nb.query(
        "batches_of_minute", flow=nb.flow, topic=topic, partition=partition, minute=minute
    )


def records(nb: Notebook, spike: Spike) -> pa.Table:
    """The records of the spike's batch that waited longest."""
    return nb.query("records_of_batch", **_place(nb, spike))


def verdict(nb: Notebook, spike: Spike) -> str:
    """Where the time went, in a sentence, and what to do next."""
    (row,) = nb.rows("landed_batch", **_place(nb, spike))
    where = f"{spike.topic}-{spike.partition}, batch {spike.batch_id}: {row['records']:,} records"
    if not row["records"]:
        return (
            f"{where}: their rows are no longer in the stage (retention); the latency rows "
            "above are what is left"
        )
    landing, producing = row["landing_ms"], row["producing_ms"]
    waited = (
        f"{where}, {landing:,.0f} ms from their timestamps to the stage, {producing:,.0f} ms "
        "from there to the target"
    )
    if landing < 0:
        return (
            f"{waited}. Timestamps are ahead of our clock: compare the producers' clocks before "
            "anything else"
        )
    if landing > producing:
        return (
            f"{waited}. They came late to the stage: a backlog (was the flow stopped before? look "
            "at lag in 01), old timestamps of the producers, or landing that is too slow (06)"
        )
    return (
        f"{waited}. They waited in the stage: the target was slow or away, or one batch was large; "
        "look at the batches above, and at `changes` and `incidents` of that minute"
    )


def _place(nb: Notebook, spike: Spike) -> dict[str, object]:
    place = {"topic": spike.topic, "partition": spike.partition, "batch_id": spike.batch_id}
    return {"flow": nb.flow, **place}
