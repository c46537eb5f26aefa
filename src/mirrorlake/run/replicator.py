"""The replicator: a landing worker per source cluster, a worker and a control loop per flow, and
live configuration."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirrorlake.checks.preflight import Preflight, judge
from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.errors import LeaseTaken, MirrorlakeError, ReplicationError
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.identity import store_identity
from mirrorlake.lake.lease import locks_work
from mirrorlake.lake.objectives import Mode, note_objectives
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing.worker import LandingWorker
from mirrorlake.produce.flow import BatchReport
from mirrorlake.run.control_loop import ControlLoop, beat_once
from mirrorlake.run.edits import Edits, in_force
from mirrorlake.run.first_start import note_first_starts
from mirrorlake.run.flow_worker import FlowWorker
from mirrorlake.run.other_process import run_by_other_process
from mirrorlake.run.samples import FlowLag
from mirrorlake.run.upkeep import Upkeep
from mirrorlake.run.watch import TopologyWatch
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import Worker

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
#: How often the topology file and the session are checked; an edit is in force within 15 seconds.
WATCH_SECONDS = 3.0

Report = Callable[[str, BatchReport], None]


@dataclass(frozen=True)
class RunOptions:
    """How `run` was asked to go. `reader` is auto, files or rows (see `produce/flow.py`); `config`
    is the topology file to watch, and `chosen` the flows that `--flow` named."""

    once: bool = False
    reader: str = "auto"
    config: Path | None = None
    chosen: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Running:
    """What runs for one flow."""

    worker: FlowWorker
    control: ControlLoop
    made_of: object


class Replicator:
    """Runs flows of one topology over one lake. `run` blocks until `stop` is set or, `once`, all is
    done."""

    def __init__(
        self,
        deployment: Deployment,
        flows: Sequence[ResolvedFlow],
        options: RunOptions,
        *,
        report: Report | None = None,
        stop: threading.Event | None = None,
        sampled: Callable[[str, FlowLag], None] | None = None,
    ) -> None:
        self.lake = lake = deployment.lake
        self.event_log = deployment.event_log
        #: Whether what is to run has been started.
        self.begun = False
        self._stage = StageFiles(lake)
        self._connections = deployment.connections
        self._flows = list(flows)
        self._options = options
        self._report = report or (lambda flow, batch: None)
        self._stop = stop or threading.Event()
        self._sampled = sampled
        #: Keeps the tables small while this process writes them.
        self._upkeep: Upkeep | None = None
        if isinstance(lake, PathLake):  # a catalog's platform does it
            self._upkeep = Upkeep(lake, self._stage)
        self._landings: dict[str, LandingWorker] = {}
        self._running: dict[str, Running] = {}
        self._errors: list[MirrorlakeError] = []
        # of a run with an end; reported after those about records
        self._control_errors: list[ReplicationError] = []
        self._complaints: list[ReplicationError] = []

    @property
    def _deployment(self) -> Deployment:
        """With the clusters as the topology file has them now."""
        return Deployment(self.lake, self._connections, self.event_log)

    @property
    def topology(self) -> Topology:
        """The topology file in force."""
        return self._connections.topology

    @property
    def running(self) -> list[Running]:
        """What runs now: of a flow that is paused as a whole nothing does."""
        return list(self._running.values())

    @property
    def workers(self) -> list[Worker]:
        """Its threads."""
        workers = [landing.thread for landing in list(self._landings.values())]
        for running in self.running:
            workers += [running.worker.thread, running.control.thread]
        return workers + ([] if self._upkeep is None else [self._upkeep.thread])

    def stop(self) -> None:
        """Ask for the end: batches in hand are finished."""
        self._stop.set()

    def run(self) -> None:
        """Replicate.

        Raises:
            TopologyError: flows must not run; nothing was done.
            LakeError: the lake was opened to be read; nothing was done.
            MirrorlakeError: the first thing that an operator has to know about, after all else has
                ended.
        """
        edits = self._edits(self._connections.topology)
        try:
            self._begin()
            self._watch(edits)
        except MirrorlakeError:
            raise
        except Exception as error:
            logger.debug("where it stopped", exc_info=True)
            raise as_mirrorlake_error(error, "the run") from error
        finally:
            self._end()
        for problem in (*self._errors, *self._control_errors, *self._complaints):
            raise problem

    def _begin(self) -> None:
        store_identity(self.lake)  # first of all: everything at the targets is named by it
        self._check_alone()
        self._apply(judge(self.lake, self._connections, self._flows))
        in_force(self.event_log, self._connections, self._flows)
        self.begun = True
        if self._upkeep is not None:
            self._upkeep.thread.start()

    def _watch(self, edits: Edits | None) -> None:
        """Until the end, or until there is nothing left to do, follow the topology file. Raises
        ReplicationError where only another process can go on."""
        checked_at = time.monotonic()
        while not self._stop.wait(LOOK_SECONDS) and not self._all_ended():
            if time.monotonic() - checked_at < WATCH_SECONDS:
                continue
            checked_at = time.monotonic()
            self.lake.check_session()
            if edits is not None:
                try:
                    edits.take_over(self._connections, self._flows)
                except Exception as error:  # noqa: BLE001 - what runs goes on; the next look tells what this could not
                    logger.error(
                        "%s; it is tried again",
                        as_mirrorlake_error(error, "following the topology file"),
                    )

    def _edits(self, begun_with: Topology) -> Edits | None:
        """Who follows the topology file; None where there is none to follow."""
        config = self._options.config
        if config is None:
            return None
        watch = TopologyWatch(config, begun_with)
        return Edits(watch, self.lake, self.event_log, self._options.chosen, self._apply)

    def _check_alone(self) -> None:
        """Raise LeaseTaken where leases are no locks, and another process runs one of the flows:
        both would write, and fence each other for ever."""
        if locks_work(self.lake):
            return
        flow = run_by_other_process(self.lake, [chosen.name for chosen in self._flows])
        if flow is not None:
            raise LeaseTaken(
                f"flow {flow} is run by another process: its samples go on coming; stop that "
                "process, or let it do the work"
            )

    def _all_ended(self) -> bool:
        """Whether there is nothing left to do. Paused flows wait in a continuous run."""
        if not self._running:
            return self._options.once and all(
                landing.thread.ended.is_set() for landing in self._landings.values()
            )
        return all(running.worker.thread.ended.is_set() for running in self._running.values())

    def _apply(self, preflight: Preflight) -> None:
        """Make what runs what is wanted: flows that are the same go on undisturbed."""
        self._connections, self._flows = preflight.connections, list(preflight.flows)
        self._complaints = preflight.complaints()
        if preflight.to_note:
            self.event_log.clusters(preflight.to_note)
        wanted = {flow.name: flow for flow in preflight.flows if not flow.paused}
        before = list(self._running)
        for name, running in list(self._running.items()):
            if name not in wanted or running.made_of != _made_of(wanted[name], preflight):
                self._stop_flow(name)
        note_first_starts(self._deployment, wanted.values())
        if self._options.once:
            self._beat(list(wanted.values()))
        self._apply_landings(preflight)
        for name, flow in wanted.items():
            if name not in self._running:
                self._start_flow(flow, preflight)
        # After the start of all that takes its time to start: in a new lake this takes as long as
        # the first batch.
        self._note(list(wanted), "once" if self._options.once else "continuous", gone=before)

    def _note(self, flows: Sequence[str], mode: Mode, gone: Sequence[str] = ()) -> None:
        """Tell the lake the objectives of the flows, and how these of them run: `alerts` go by it.
        Records go on where that fails; the run's end reports it."""
        try:
            note_objectives(self.lake, self._connections.topology, dict.fromkeys(flows, mode), gone)
        except Exception as error:  # noqa: BLE001 - of whatever kind: records go on
            problem = as_mirrorlake_error(error, "noting the objectives of the flows")
            logger.error("%s", problem)
            self._errors.append(problem)

    def _beat(self, flows: Sequence[ResolvedFlow]) -> None:
        """One heartbeat a flow for a run with an end, before landing asks for the ends: this run
        then mirrors it."""
        problems = [beat_once(flow, self._connections, self.event_log) for flow in flows]
        self._control_errors += [problem for problem in problems if problem is not None]

    def _apply_landings(self, preflight: Preflight) -> None:
        readers: dict[str, list[ResolvedFlow]] = {}
        # All flows of the file, not only those chosen: another process may produce the others from
        # this stage.
        for source, flows in preflight.connections.topology.sources().items():
            if any(flow.source == source for flow in preflight.flows):
                readers[source] = flows
        for source in [source for source in self._landings if source not in readers]:
            landing = self._landings.pop(source)
            landing.thread.stop()
            landing.thread.join()
            if landing.error is not None:
                self._errors.append(landing.error)
        for source, flows in readers.items():
            fresh = source not in self._landings
            if fresh:
                self._landings[source] = LandingWorker(
                    source, self._deployment, self._stage, self._options.once
                )
            self._landings[source].set_flows(flows, self._connections)
            if fresh:
                self._landings[source].thread.start()

    def _start_flow(self, flow: ResolvedFlow, preflight: Preflight) -> None:
        deployment = self._deployment
        worker = FlowWorker(
            flow,
            deployment,
            self._stage,
            self._landings[flow.source],
            report=self._report,
            once=self._options.once,
            reader=self._options.reader,
            left_out=preflight.left_out.get(flow.name),
        )
        control = ControlLoop(flow, deployment, worker, self._sampled)
        self._running[flow.name] = Running(worker, control, _made_of(flow, preflight))
        worker.thread.start()
        if not self._options.once:
            control.thread.start()

    def _stop_flow(self, name: str) -> None:
        running = self._running.pop(name)
        running.control.thread.stop()
        running.worker.thread.stop()
        running.worker.thread.join()
        running.control.thread.join()
        self._errors += [
            error
            for error in (running.worker.error, running.control.thread.error)
            if error is not None
        ]

    def _end(self) -> None:
        """End everything; in a run that came to its end, sample where it is. What did not end in
        order is an error of the run."""
        threads = [landing.thread for landing in self._landings.values()]
        threads += [running.control.thread for running in self._running.values()]
        if self._upkeep is not None:
            threads.append(self._upkeep.thread)
        for thread in threads:
            thread.stop()
        for running in self._running.values():
            running.worker.thread.stop()
        for landing in self._landings.values():
            landing.thread.join()
        for running in self._running.values():
            running.worker.thread.join()
            if self._options.once:
                running.control.run_once()
            else:
                running.control.thread.join()
            running.control.finish()
        errors = [landing.error for landing in self._landings.values()]
        errors += [running.worker.error for running in self._running.values()]
        errors += [running.control.thread.error for running in self._running.values()]
        if self._upkeep is not None:
            self._upkeep.thread.join()
            errors.append(self._upkeep.thread.error)
        self._errors += [error for error in errors if error is not None]
        if self._options.once:
            self._control_errors += [
                error for running in self._running.values() for error in running.control.errors
            ]
        if self._stop.is_set() and not self._options.once:
            self._note(list(self._running), "stopped")


def _made_of(flow: ResolvedFlow, preflight: Preflight) -> object:
    """All of a topology that a running flow depends on: if it changes, the flow is restarted."""
    topology = preflight.connections.topology
    ends = [topology.clusters[alias] for alias in (flow.source, flow.target)]
    return flow, ends, topology.aliases, dict(preflight.left_out.get(flow.name, {}))
