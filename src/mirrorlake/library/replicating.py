"""Runs a replicator and records the run: the body of `OpenLake.run`."""

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
from mirrorlake.naming.worker_groups import work_of_flow
from mirrorlake.native.selfcheck import problem as native_problem
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.options import RunOptions, stopped_early
from mirrorlake.run.replicator import Replicator
from mirrorlake.run.samples import FlowLag
from mirrorlake.spark.causes import cause_of
from mirrorlake.spark.java import find_java
from mirrorlake.spark.session_start import SessionStart
from mirrorlake.threads import in_thread

if TYPE_CHECKING:
    from mirrorlake.metrics.recorder import Recorder
    from mirrorlake.metrics.standing import Standing
    from mirrorlake.tracking.runs import Tracked

logger = logging.getLogger(__name__)

ReportProduced = Callable[[Produced], None]
#: Tables of which the start reads at most the log.
_ASKED_LATER = {"records", "latency", "audits"}


def replicated(
    known: Internals,
    options: RunOptions,
    *,
    report: ReportProduced | None,
    stop: threading.Event | None,
    register: bool,
    metrics: str | None,
) -> Rows:
    """Run flows until the end; returns and raises as documented for `OpenLake.run`."""
    from mirrorlake.tracking.runs import check_wanted, tracked  # an extra, which is optional here

    topology, progress = known.topology, known.progress or Progress()
    once, reader, names = options.once, options.reader, options.chosen
    known.makes_lake = True
    with ExitStack() as outside:
        standing = outside.enter_context(_published(topology, metrics, progress))
        _check_standby(topology, once, options.standby)
        check_wanted(topology.tracking)
        # If no record passes through the JVM, tuning it costs more than it ever gains.
        known.short = (
            topology.lake.path is not None and reader != "rows" and native_problem() is None
        )
        flows = topology.require_flows(names) if once else topology.active_flows(names)
        _tell_idle(flows)
        _check_unheld(topology, flows)
        if register:
            prepare_to_register(known)
        start = known.later_session()
        # Few records can be landed without a session: it starts once many arrive.
        later = start is not None and known.short
        # The other checks go on meanwhile, and wrong input is reported without waiting for it.
        java = in_thread("looking for Java", find_java) if later and not once else None
        if start is not None and not later:
            start.begin()
        exists = lake_exists(topology.lake, topology.directory)
        # Clusters first, since checking the lake creates it.
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
        progress.expect([flow.name for flow in flows], reader)
        counts = _Counts(progress, report)
        ending = outside.enter_context(stopping(stop))
        if start is not None and topology.lake.path is not None:
            _open_early(known, progress)
        if start is not None and not later:
            with progress.phase("starting Spark", start.began):
                ready = start.ready(ending)
            if not ready:  # stopped before there was a session
                if once:
                    raise stopped_early()
                return counts.rows()
        tracking = outside.enter_context(tracked(topology, "run", facts, figures=True))
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


@contextmanager
def _published(
    topology: Topology, address: str | None, progress: Progress
) -> Iterator["Standing | None"]:
    """Serve and send the metrics of the run while the block runs, as the file says; `address`
    wins. Yields what they come from, None without any."""
    wanted = topology.metrics
    if address is not None:
        wanted = wanted.model_copy(update={"address": address})
    if wanted.address is None and wanted.otlp is None:
        yield None
        return
    from mirrorlake.metrics.standing import published

    with published(wanted, progress.current_phase) as standing:
        yield standing


def _check_standby(topology: Topology, once: bool, standby: bool) -> None:
    """Raise InputError if the options or the file rule out standing by."""
    if standby and topology.availability != "kafka":
        raise InputError(
            "--standby stands by for another process of the topology file, which does not say that "
            "its processes do so; add `availability: kafka` to it (docs/high_availability.md)"
        )
    if standby and once:
        raise InputError("--standby has no end, and --once has one; leave one of them out")


def _tell_idle(flows: Sequence[ResolvedFlow]) -> None:
    """Warn of flows that stay idle; a run without an end takes them up once the file is edited."""
    if not flows:
        logger.warning("no flow of the topology file is enabled: nothing is mirrored until one is")
    for flow in flows:
        if flow.paused:
            logger.warning("flow %s is paused as a whole: nothing of it is mirrored", flow.name)


def _check_unheld(topology: Topology, flows: Sequence[ResolvedFlow]) -> None:
    """Raise LeaseTaken if others run all of the flows: before Spark or a cluster is asked."""
    leases = leases_of(topology.lake, topology.directory)
    if leases is not None and topology.availability != "kafka":
        check_free(leases, [work_of_flow(flow.name) for flow in flows if not flow.paused])


def _opened(known: Internals, progress: Progress) -> Lake:
    """The lake, opened on the first call."""
    if known.tables_there:
        return known.tables
    with progress.phase("opening the lake"):
        return known.tables


def _open_early(known: Internals, progress: Progress) -> None:
    """Open or create a lake while Spark starts; in a store also open its small tables in advance,
    since each request takes time there. None of this needs Spark."""
    tables = _opened(known, progress)
    if tables.in_store:
        tables.reader.open_together(set(TABLES) - _ASKED_LATER)


def _prepare_behind(start: SessionStart, tables: Lake, tracking: "Tracked | None") -> None:
    """Prepare a session, once it has started, for the first batch: attach the lake, and start the
    process that Python workers are forked from. With `tracking`, record the session too."""

    def prepare() -> None:
        from mirrorlake.spark.session import start_workers

        try:
            start.session()
            if tracking is not None:
                tracking.session(tables.spark)
            start_workers(tables.spark)
        except Exception as error:  # noqa: BLE001 - preparation only
            # Usually the session ended meanwhile; otherwise its next user gets the same error.
            logger.debug("the session could not be prepared: %s", cause_of(error))

    start.run_after_start(prepare)


class _Counts:
    """Forwards the reports of flows to listeners; `progress` counts them for the answer."""

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
    """Yield what ends the work: `given`, or one that an interrupt of the main thread sets."""
    event = given or threading.Event()
    if given is not None or threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.signal(signal.SIGINT, lambda _signal, _frame: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
