"""A replicator, run and recorded: what `OpenLake.run` is."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mirrorlake.checks.preflight import judge
from mirrorlake.lake.opening import check_location, lake_exists
from mirrorlake.library.answers import Produced, Rows
from mirrorlake.library.internals import Internals
from mirrorlake.produce.flow import BatchReport
from mirrorlake.run.replicator import Replicator, RunOptions
from mirrorlake.tracking.runs import tracked

Report = Callable[[Produced], None]


def replicated(
    known: Internals,
    names: Sequence[str] | None,
    once: bool,
    report: Report | None,
    stop: threading.Event | None,
    reader: str,
) -> Rows:
    """Run flows until the end; returns flow, records and batches of each. Raises as `OpenLake.run` says."""
    known.short = False
    topology = known.topology
    flows = topology.active_flows(names)
    # Before Spark starts, so that wrong input is told within seconds; clusters first, since checking the lake makes it.
    judge(None, known.connections, flows, lake_exists(topology.lake, topology.directory))
    check_location(topology.lake, topology.directory)
    totals = {flow.name: Produced(flow.name, 0, 0, reader) for flow in flows}
    facts = {"flows": " ".join(totals), "once": str(once).lower(), "reader": reader}
    options = RunOptions(once, reader, None if once else known.config, None if names is None else tuple(names))
    with tracked(topology, "run", facts, figures=True) as tracking, _stopping(stop) as ending:

        def count(name: str, batch: BatchReport) -> None:
            tracking.batch(name, batch)
            total = totals.get(name, Produced(name, 0, 0, reader))
            totals[name] = Produced(name, total.records + batch.record_count, total.batches + 1, batch.reader)
            if report is not None:
                report(totals[name])

        replicator = Replicator(known.tables, known.connections, flows, options, count, ending, tracking.sampled)
        tracking.session(known.spark)
        replicator.run()
        counts = {name: {"records": total.records, "batches": total.batches} for name, total in totals.items()}
        tracking.report({"flows": counts})
    return Rows({"flow": name, **count} for name, count in counts.items())


@contextmanager
def _stopping(given: threading.Event | None) -> Iterator[threading.Event]:
    """The event that ends the run; where none is given, one that an interrupt of the main thread sets meanwhile."""
    event = given or threading.Event()
    if given is not None or threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.signal(signal.SIGINT, lambda _signal, _frame: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
