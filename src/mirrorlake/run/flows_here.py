"""The flows of a topology file that run in this process: those whose lease it holds."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mirrorlake.checks.preflight import Preflight
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import Fenced, LeaseTaken, MirrorlakeError
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lease import AnyLease
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing.worker import LandingWorker
from mirrorlake.naming.worker_groups import work_of_flow
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.run.control_loop import ControlLoop
from mirrorlake.run.flow_failures import QUIET_FAILURES
from mirrorlake.run.flow_worker import FlowWorker
from mirrorlake.run.leases import Leases
from mirrorlake.run.samples import FlowLag
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import PAUSES, Worker

logger = logging.getLogger(__name__)

#: How long a flow that could not begin, or was fenced while it held the lease, waits after its
#: first, second, … setback in a row, seconds; and the age from which a setback no longer counts.
SETBACK_PAUSES = (0.0, *PAUSES)
IN_A_ROW_SECONDS = 60.0

ReportBatch = Callable[[str, BatchReport], None]
Sampled = Callable[[str, FlowLag], None]


@dataclass(frozen=True)
class Running:
    """The workers of one flow."""

    worker: FlowWorker
    control: ControlLoop
    lease: AnyLease

    def stop(self) -> None:
        """Ask both to end."""
        self.control.thread.stop()
        self.worker.thread.stop()

    def join(self, seconds: float | None = None) -> bool:
        """Wait until both have ended; returns whether they have."""
        return self.worker.thread.join(seconds) and self.control.thread.join(seconds)


@dataclass(frozen=True)
class _Wanted:
    """A flow that runs as soon as this process holds its lease."""

    flow: ResolvedFlow
    lease: AnyLease
    preflight: Preflight


class _Setback(NamedTuple):
    """How often in a row a flow did not come to run; when it begins again, by time.monotonic()."""

    times: int
    until: float


class FlowsHere:
    """The flows of a replicator, for its thread. `once` runs flows up to an end; `reader` is how
    their tasks read the stage."""

    def __init__(
        self,
        stage: StageFiles,
        leases: Leases,
        landings: Mapping[str, LandingWorker],
        *,
        once: bool,
        reader: str,
        report: ReportBatch,
        sampled: Sampled | None,
    ) -> None:
        self._stage, self._leases, self._landings = stage, leases, landings
        self._once, self._reader = once, reader
        self._report, self._sampled = report, sampled
        self.running: dict[str, Running] = {}
        #: The errors of flows that an edit stopped.
        self.errors: list[MirrorlakeError] = []
        self._wanted: dict[str, _Wanted] = {}
        self._given_up: list[tuple[str, Running]] = []
        self._setbacks: dict[str, _Setback] = {}
        #: Flows whose lease this process has held.
        self._had: set[str] = set()

    @property
    def wanted(self) -> list[str]:
        """The flows that this process runs, or stands by for."""
        return list(self._wanted)

    @property
    def tenures(self) -> dict[str, tuple[FlowWorker, int]]:
        """The worker of each flow here whose lease was taken, and how many times it was."""
        workers = {name: running.worker for name, running in self.running.items()}
        return {name: (one, one.tenures) for name, one in workers.items() if one.tenures}

    @property
    def all_ended(self) -> bool:
        """Whether all flows here have ended, and this process stands by for none."""
        return self._wanted.keys() == self.running.keys() and all(
            running.worker.thread.ended.is_set() and not self._is_interrupted(name, running)
            for name, running in self.running.items()
        )

    def keep(self, wanted: Mapping[str, ResolvedFlow], preflight: Preflight) -> None:
        """End flows that are no longer wanted, or that have changed."""
        for name, before in list(self._wanted.items()):
            same = name in wanted and _made_of(before.flow, before.preflight) == _made_of(
                wanted[name], preflight
            )
            if not same:
                self._end(name)
            if name not in wanted:
                del self._wanted[name]
                self._had.discard(name)
                self._leases.give_up(work_of_flow(name))

    def halt(self, names: Iterable[str]) -> None:
        """Stop flows here and wait until they have ended, so that they report nothing more. A flow
        does not begin again while it is wanted."""
        for name in names:
            if name in self.running:
                self.running[name].stop()
                self.running[name].join()

    def want(self, wanted: Mapping[str, ResolvedFlow], preflight: Preflight) -> None:
        """Run these from now on, or stand by for them."""
        for name, flow in wanted.items():
            self._wanted[name] = _Wanted(flow, self._leases.of_flow(flow), preflight)

    def follow(self, deployment: Deployment) -> list[str]:
        """Run the flows whose lease this process holds, and no others; returns those that began. A
        flow that cannot begin holds up no other: it waits, and is an incident until it runs."""
        for name, running in list(self.running.items()):
            if self._is_interrupted(name, running):
                running.stop()
                self._given_up.append((name, self.running.pop(name)))
                if running.worker.tenures:
                    self._had.add(name)
                if running.lease.held and running.worker.thread.error is not None:
                    self._set_back(name, running.worker.thread.error, deployment)
        self._given_up = [(name, each) for name, each in self._given_up if not each.join(0.0)]
        ending = {name for name, _ in self._given_up}
        due = [
            name
            for name, wanted in self._wanted.items()
            if name not in self.running and name not in ending
            if self._once or (wanted.lease.held and not self._waits(name))
        ]
        return [name for name in due if self._begins(name, deployment)]

    def _is_interrupted(self, name: str, running: Running) -> bool:
        """Whether a flow has to start anew here once this process holds its lease again. If leases
        are locks, that holds only for a flow that ran here: another process, such as a command,
        took the lease for a moment between two attempts."""
        if self._once:
            return False
        if running.lease.stands_by:
            return _is_over(running)
        ran = name in self._had or running.worker.tenures > 0
        return ran and isinstance(running.worker.thread.error, LeaseTaken)

    def _begins(self, name: str, deployment: Deployment) -> bool:
        try:
            self._start(self._wanted[name], deployment)
        except Exception as error:
            if self._once:
                raise
            self._set_back(
                name, as_mirrorlake_error(error, f"the start of flow {name}"), deployment
            )
            return False
        return True

    def _waits(self, name: str) -> bool:
        return name in self._setbacks and time.monotonic() < self._setbacks[name].until

    def _set_back(self, name: str, problem: MirrorlakeError, deployment: Deployment) -> None:
        """Let a flow wait, longer each time; an incident reports one that waits for long."""
        now, before = time.monotonic(), self._setbacks.get(name, _Setback(0, 0.0))
        times = before.times + 1 if now < before.until + IN_A_ROW_SECONDS else 1
        pause = SETBACK_PAUSES[min(times, len(SETBACK_PAUSES)) - 1]
        self._setbacks[name] = _Setback(times, now + pause)
        logger.error("flow %s: %s; it begins again in %.0f s", name, problem, pause)
        # a flow that another process runs is healthy
        if times > QUIET_FAILURES and not isinstance(problem, LeaseTaken):
            try:  # the incident closes when the flow runs, here or in another process
                deployment.event_log.incidents.open(name, "flow_waits", problem)
            except Exception as error:  # noqa: BLE001 - the next setback reports it
                logger.error("%s", as_mirrorlake_error(error, f"reporting of flow {name}"))

    def stop(self) -> None:
        """Ask all flows to end."""
        for running in self.running.values():
            running.stop()

    @property
    def producing(self) -> dict[str, Worker]:
        """The producing threads, by the names of their leases."""
        return {work_of_flow(name): each.worker.thread for name, each in self.running.items()}

    def end(self) -> list[MirrorlakeError]:
        """Wait until all flows have ended, each with a last sample unless another process goes on
        with it; with `once`, control does each of its tasks once. Returns the errors."""
        for name, running in self.running.items():
            running.worker.thread.join()
            if self._once:
                running.control.run_once()
            else:
                running.control.thread.join()
            if self._once or self.is_deserted(name):
                running.control.finish()
        for _name, given_up in self._given_up:
            given_up.join()
        return [*self.errors, *_errors(self.running.values())]

    def is_deserted(self, name: str) -> bool:
        """Whether no process runs a flow, or stands by for it, once this one has ended it."""
        running = self.running.get(name)
        error = None if running is None else running.worker.thread.error
        return not isinstance(error, Fenced | LeaseTaken) and self._leases.is_deserted(name)

    def _start(self, wanted: _Wanted, deployment: Deployment) -> None:
        flow = wanted.flow
        deployment.event_log.states.forget(flow.source)  # another process may have noted some
        worker = FlowWorker(
            flow,
            deployment,
            self._stage,
            self._landings[flow.source],
            lease=wanted.lease,
            report=self._report,
            once=self._once,
            reader=self._reader,
            left_out=wanted.preflight.left_out.get(flow.name),
        )
        control = ControlLoop(flow, deployment, worker, self._sampled)
        running = Running(worker, control, wanted.lease)
        try:
            worker.thread.start()
            if not self._once:
                control.thread.start()
        except BaseException:  # e.g. no more threads; else nothing would start it again
            running.stop()
            self._given_up.append((flow.name, running))
            raise
        self.running[flow.name] = running

    def _end(self, name: str) -> None:
        running = self.running.pop(name, None)
        if running is not None:
            running.stop()
            running.join()
            self.errors += _errors([running])


def _errors(ended: Iterable[Running]) -> list[MirrorlakeError]:
    """The errors that flows ended with, those about records first."""
    known = [*ended]
    errors = [running.worker.error for running in known]
    errors += [running.control.thread.error for running in known]
    return [error for error in errors if error is not None]


def _is_over(running: Running) -> bool:
    """Whether another process holds the lease, or fenced this one and held it for a moment."""
    return not running.lease.held or isinstance(running.worker.thread.error, Fenced)


def _made_of(flow: ResolvedFlow, preflight: Preflight) -> object:
    """All parts of a topology that a running flow depends on: if one changes, the flow restarts."""
    topology = preflight.connections.topology
    ends = [topology.clusters[alias] for alias in (flow.source, flow.target)]
    return flow, ends, topology.aliases, dict(preflight.left_out.get(flow.name, {}))
