"""Notebook 07: one record's life."""

from datetime import datetime, timezone

import altair as alt
import pyarrow as pa

from mirrorlake.errors import InputError
from mirrorlake.library.tracing import Trace
from mirrorlake.notebook import charts
from mirrorlake.notebook.host import Notebook


def trace(nb: Notebook) -> Trace:
    """Trace the widgets' record, by place or key; by default the busiest topic's newest.

    Raises InputError for an invalid place, UnknownOffset for one that the flow has never seen.
    """
    flow = nb.lake.flows[nb.flow]
    if key := nb.widget("key"):
        return flow.trace(nb.topic, key=key, since=_since(nb))
    if nb.widget("offset"):
        place = int(nb.number("partition", 0)), int(nb.number("offset", 0))
        return flow.trace(nb.topic, *place, reverse=nb.widget("side") == "target")
    newest = nb.rows("newest_mapped", flow=nb.flow, topic=nb.topic)
    if not newest:
        raise InputError(
            f"nothing of topic {nb.topic} is mapped by flow {nb.flow}; give a topic, or an offset"
        )
    return flow.trace(nb.topic, newest[0]["partition"], newest[0]["offset"])


def story(life: Trace) -> str:
    """The whole story, as the command line prints it."""
    return "\n".join(life.lines())


def stages(life: Trace) -> pa.Table:
    """A row per stage: when, how long after the previous one, and what happened."""
    schema = pa.schema(
        [("stage", pa.string()), ("at", pa.timestamp("us")), ("after_ms", pa.int64())]
        + [("said", pa.string())]
    )
    return pa.Table.from_pylist(list(life.stages), schema=schema)


def held_up(life: Trace) -> pa.Table:
    """What held the record up, by time."""
    times = [(name, pa.timestamp("us")) for name in ("since", "until")]
    schema = pa.schema([("what", pa.string()), *times, ("said", pa.string())])
    return pa.Table.from_pylist(list(life.held_up), schema=schema)


def neighbours(nb: Notebook, life: Trace) -> alt.Chart:
    """The latency of the staged records among the 500 offsets on either side."""
    place = {name: getattr(life, name) for name in ("flow", "topic", "partition", "offset")}
    names = {"landing_ms": "until landed", "replication_ms": "until on the target"}
    title = f"around offset {life.offset} of {life.topic}-{life.partition}"
    return charts.lines(
        nb.query("around_record", **place), "offset", names, title=title, unit="ms", over="Q"
    )


def _since(nb: Notebook) -> datetime | None:
    text = nb.widget("since")
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"the widget since holds {text}, which is no time such as 2026-11-21 23:47:00"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
