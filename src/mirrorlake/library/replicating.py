"""A replicator, run and recorded: what `OpenLake.run` is."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from mirrorlake.checks.preflight import judge
from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.errors import InputError
from mirrorlake.lake.definitions import TABLES
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import check_free
from mirrorlake.lake.opening import check_location, lake_exists, leases_of
from mirrorlake.library.answers import Produced, Rows
from mirrorlake.library.internals import Internals
from mirrorlake.library.progress import Progress
from mirrorlake.library.registering import prepare_to_register, registered
from mirrorlake.library.session_start import SessionStart
from mirrorlake.naming.worker_groups import work_of_flow
from mirrorlake.native.selfcheck import problem as native_problem
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.options import RunOptions, stopped_early
from mirrorlake.run.replicator import Replicator
from mirrorlake.run.samples import FlowLag
from mirrorlake.spark.causes import cause_of
from mirrorlake.spark.java import find_java
from mirrorlake.threads import in_thread

if TYPE_CHECKING:
    from mirrorlake.metrics.recorder import Recorder
    from mirrorlake.metrics.standing import Standing
    from mirrorlake.tracking.runs import Tracked

logger = logging.getLogger(__name__)

ReportProduced = Callable[[Produced], None]
#: Tables of which a start asks the log alone, or nothing.
_ASKED_LATER = {"records", "latency", "audits"}


def replicated(
    known: Internals,
    names: Sequence[str] | None,
    *,
    once: bool,
    report: ReportProduced | None,
    stop: threading.Event | None,
    reader: str,
    register: bool = False,
    metrics: str | None = None,
    standby: bool = False,
) -> Rows:
    """Run flows until the end; returns and raises as `OpenLake.run` says."""
    progress, wanted = known.progress or Progress(), known.topology.metrics
    if metrics is not None:
        wanted = wanted.model_copy(update={"address": metrics})
    with ExitStack() as outside:
        standing = None
        if wanted.address is not None or wanted.otlp is not None:
            from mirrorlake.metrics.standing import published

            standing = outside.enter_context(published(wanted, progress.current_phase))
        return _replicated(
            known,
            names,
            progress,
            standing,
            once=once,
            report=report,
            stop=stop,
            reader=reader,
            register=register,
            standby=standby,
        )


def _replicated(
    known: Internals,
    names: Sequence[str] | None,
    progress: Progress,
    standing: "Standing | None",
    *,
    once: bool,
    report: ReportProduced | None,
    stop: threading.Event | None,
    reader: str,
    register: bool,
    standby: bool,
) -> Rows:
    """The same; `standing` is what is served or sent of it, if anything is."""
    from mirrorlake.tracking.runs import check_wanted, tracked  # of an extra: a run may do without

    topology = known.topology
    _check_standby(topology, once, standby)
    check_wanted(topology.tracking)
    # Where no record goes through the JVM, what makes that fast costs more than it ever gives back.
    known.short = topology.lake.path is not None and reader != "rows" and native_problem() is None
    flows = topology.some_flows(names) if once else topology.active_flows(names)
    _tell_idle(flows)
    _check_unheld(topology, flows)
    if register:
        prepare_to_register(known)
    start = known.later_session()
    # Where few records are landed none is needed: it starts when there are many.
    later = start is not None and known.short
    # Meanwhile the rest is asked, and wrong input is reported without waiting for it.
    java = in_thread("looking for Java", find_java) if later and not once else None
    if start is not None and not later:
        start.begin()
    exists = lake_exists(topology.lake, topology.directory)
    # Clusters first, since checking the lake makes it.
    with progress.phase("asking the clusters"):
        judge(None, known.connections, flows, exists)
    check_location(topology.lake, topology.directory)
    if java is not None:
        java.result()  # many records may come at any time
    facts = {
        "flows": " ".join(flow.name for flow in flows),
        "once": str(once).lower(),
        "reader": reader,
    }
    options = RunOptions(
        once,
        reader,
        None if once else known.config,
        None if names is None else tuple(names),
        standby=standby,
    )
    progress.expect([flow.name for flow in flows], reader)
    counts = _Counts(progress, report)
    with stopping(stop) as ending:
        if start is not None and topology.lake.path is not None:
            _open_early(known, progress)
        if start is not None and not later:
            with progress.phase("starting Spark", start.began):
                ready = start.ready(ending)
            if not ready:  # stopped before there was a session
                if once:
                    raise stopped_early()
                return counts.rows()
        with tracked(topology, "run", facts, figures=True) as tracking:
            counts.listeners.append(tracking)
            if not later:
                tracking.session(known.spark)
            tables = _opened(known, progress)
            tables.starting = start if later else None
            if register:
                with progress.phase("registering the tables"):
                    registered(known)
            if start is not None:
                _prepare_behind(start, tables, tracking if later else None)
            replicator = Replicator(
                known.deployment,
                flows,
                options,
                report=counts.batch,
                stop=ending,
                sampled=counts.sampled,
            )
            if standing is not None:
                counts.listeners.append(standing.recorder)
                tables.meter = standing.recorder
                standing.replicator = replicator
            progress.incidents = replicator.event_log.incidents.open_counts
            replicator.run()
            tracking.report({"flows": counts.of_flows()})
    return counts.rows()


def _check_standby(topology: Topology, once: bool, standby: bool) -> None:
    """Raise InputError where nothing could be stood by for."""
    if standby and topology.availability != "kafka":
        raise InputError(
            "--standby stands by for another process of the topology file, which does not say that "
            "its processes do so; add `availability: kafka` to it (docs/high_availability.md)"
        )
    if standby and once:
        raise InputError("--standby has no end, and --once has one; leave one of them out")


def _tell_idle(flows: Sequence[ResolvedFlow]) -> None:
    """Say of what a run will do nothing; one without an end does once the file is edited."""
    if not flows:
        logger.warning("no flow of the topology file is enabled: nothing is mirrored until one is")
    for flow in flows:
        if flow.paused:
            logger.warning("flow %s is paused as a whole: nothing of it is mirrored", flow.name)


def _check_unheld(topology: Topology, flows: Sequence[ResolvedFlow]) -> None:
    """Raise LeaseTaken where other processes run all of some flows: before Spark is started, and a
    cluster is asked."""
    leases = leases_of(topology.lake, topology.directory)
    if leases is not None and topology.availability != "kafka":
        check_free(leases, [work_of_flow(flow.name) for flow in flows if not flow.paused])


def _opened(known: Internals, progress: Progress) -> Lake:
    """The lake, which is opened once."""
    if known.tables_there:
        return known.tables
    with progress.phase("opening the lake"):
        return known.tables


def _open_early(known: Internals, progress: Progress) -> None:
    """Open a lake, or make it, while Spark starts; in a store have its small tables ready to be
    asked, too, since each answer takes its time there. None of it needs Spark."""
    tables = _opened(known, progress)
    if tables.in_store:
        tables.reader.open_together(set(TABLES) - _ASKED_LATER)


def _prepare_behind(start: SessionStart, tables: Lake, tracking: "Tracked | None") -> None:
    """Have a session do, as soon as it is there, what the first batch would wait for: learn of the
    lake, and start the process that Python workers are forked from. One that was not waited for is
    tracked, too."""

    def prepare() -> None:
        from mirrorlake.spark.session import start_workers

        try:
            start.session()
            if tracking is not None:
                tracking.session(tables.spark)
            start_workers(tables.spark)
        except Exception as error:  # noqa: BLE001 - it only prepares
            # Mostly the session ended meanwhile; else its next user meets and reports the same.
            logger.debug("the session could not be prepared: %s", cause_of(error))

    start.have_prepared(prepare)


class _Counts:
    """Hands on what flows report to those that listen; `progress` counts it for the answer."""

    def __init__(self, progress: Progress, report: ReportProduced | None) -> None:
        self.listeners: list[Progress | Tracked | Recorder] = [progress]
        self._progress, self._report = progress, report

    def batch(self, name: str, batch: BatchReport) -> None:
        """A batch was produced."""
        for listener in self.listeners:
            listener.batch(name, batch)
        if self._report is not None:
            self._report(self._progress.produced()[name])

    def sampled(self, name: str, lag: FlowLag) -> None:
        """A sample of positions was written."""
        for listener in self.listeners:
            listener.sampled(name, lag)

    def of_flows(self) -> dict[str, dict[str, int]]:
        """Records, batches and short batches by flow."""
        names = "records", "batches", "short_batches"
        return {
            flow: {name: getattr(counts, name) for name in names}
            for flow, counts in self._progress.produced().items()
        }

    def rows(self) -> Rows:
        """The same as an answer."""
        return Rows({"flow": name, **count} for name, count in self.of_flows().items())


@contextmanager
def stopping(given: threading.Event | None) -> Iterator[threading.Event]:
    """The event that ends it; where none is given, one that an interrupt of the main thread sets
    meanwhile."""
    event = given or threading.Event()
    if given is not None or threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.signal(signal.SIGINT, lambda _signal, _frame: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
