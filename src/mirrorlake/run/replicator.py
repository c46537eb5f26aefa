"""The replicator: one landing worker per source cluster, a flow worker and a control loop per flow
whose lease this process holds, and live edits of the topology file."""

import logging
import threading
import time
from collections.abc import Collection, Sequence

from mirrorlake.checks.preflight import Preflight, judge
from mirrorlake.checks.rules import aliases_of
from mirrorlake.config.topology import ResolvedFlow, Topology
from mirrorlake.errors import ClusterUnreachable, MirrorlakeError, ReplicationError
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.identity import store_identity
from mirrorlake.lake.lease import locks_work
from mirrorlake.lake.path_lake import PathLake
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.run.control_loop import beat_once
from mirrorlake.run.edits import Edits, TopologyWatch, in_force
from mirrorlake.run.first_start import note_starts_known
from mirrorlake.run.flows_here import FlowsHere, ReportBatch, Running, Sampled
from mirrorlake.run.landings_here import LandingsHere
from mirrorlake.run.leases import Leases
from mirrorlake.run.noted_modes import NotedModes
from mirrorlake.run.options import RunOptions, stopped_early
from mirrorlake.run.other_process import check_alone
from mirrorlake.run.preparing import TakeOver
from mirrorlake.run.silent_clusters import SilentClusters, judged_late, note_refused
from mirrorlake.run.upkeep import UpkeepWorker
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import Worker

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
#: How often the topology file and the session are checked; an edit is in force within 15 seconds.
WATCH_SECONDS = 3.0
#: How long a run makes none of a catalog's views: the first records come before them.
VIEWS_SECONDS = 10.0


class Replicator:
    """Runs a topology's flows over a lake. `run` blocks until `stop` or, with `once`, the end."""

    def __init__(
        self,
        deployment: Deployment,
        flows: Sequence[ResolvedFlow],
        options: RunOptions,
        *,
        report: ReportBatch | None = None,
        stop: threading.Event | None = None,
        sampled: Sampled | None = None,
    ) -> None:
        self.lake = lake = deployment.lake
        self.event_log = deployment.event_log
        #: Whether `run` has started its workers.
        self.begun = False
        self._silent = SilentClusters(waits=not options.once)
        #: Flows whose start offsets are not known yet, with their sources.
        self._unbegun: dict[str, str] = {}
        self._stage = StageFiles(lake)
        self._connections = deployment.connections
        self._flows = list(flows)
        self._options = options
        self._stop = stop or threading.Event()
        self._leases = Leases(
            deployment, once=options.once, standby=options.standby, brief=options.keeps_modes
        )
        #: What this process keeps ready while it stands by.
        self.take_over = TakeOver(lake, self._leases, self._stop)
        #: Keeps the tables small while this process writes them.
        self._upkeep: UpkeepWorker | None = None
        if isinstance(lake, PathLake):  # a catalog's platform does it
            self._upkeep = UpkeepWorker(lake, self._stage, lambda: self._leases.any_held)
            # a run with `--once` may end before that thread gets a turn
            lake.tables.kept_up = not options.once
        self._errors: list[MirrorlakeError] = []
        self._modes = NotedModes(lake, once=options.once, keeps=options.keeps_modes)
        self._landings = LandingsHere(
            self._stage, self._leases, once=options.once, note=self._errors.append
        )
        self._here = FlowsHere(
            self._stage,
            self._leases,
            self._landings.workers,
            once=options.once,
            reader=options.reader,
            report=report or (lambda flow, batch: None),
            sampled=sampled,
        )
        # of a run with `--once`; reported after errors about records
        self._control_errors: list[ReplicationError] = []
        self._complaints: list[MirrorlakeError] = []

    @property
    def _deployment(self) -> Deployment:
        """The deployment, with the clusters as the topology file has them now."""
        return Deployment(self.lake, self._connections, self.event_log)

    @property
    def topology(self) -> Topology:
        """The topology file in force."""
        return self._connections.topology

    @property
    def running(self) -> list[Running]:
        """The flows that run now: none that is paused, or whose lease another process holds."""
        return list(self._here.running.values())

    @property
    def wanted(self) -> list[str]:
        """The names of the flows that this process runs, or stands by for."""
        return self._here.wanted

    @property
    def workers(self) -> list[Worker]:
        """Its threads."""
        workers = list(self._landings.threads.values())
        for running in self.running:
            workers += [running.worker.thread, running.control.thread]
        workers += self._leases.workers
        return workers + ([] if self._upkeep is None else [self._upkeep.thread])

    def stop(self) -> None:
        """Ask the run to end. Batches in hand are finished."""
        self._stop.set()

    def run(self) -> None:
        """Replicate.

        Raises:
            TopologyError: flows must not run; nothing was done.
            LakeError: the lake was opened to be read; nothing was done.
            MirrorlakeError: the first error that an operator has to know, once all has ended.
        """
        edits, ended = self._edits(self._connections.topology), False
        try:
            self._begin()
            self._watch(edits)
            ended = self._all_ended()
            if self._options.once and ended:
                self._judge_at_last()
            if self._options.once:
                self.lake.keep_views()
        except MirrorlakeError:
            raise
        except Exception as error:
            logger.debug("where it stopped", exc_info=True)
            raise as_mirrorlake_error(error, "the run") from error
        finally:
            self._end()
        for problem in (*self._errors, *self._control_errors, *self._complaints):
            raise problem
        if self._options.once and not ended:
            raise stopped_early()

    def _begin(self) -> None:
        store_identity(self.lake)  # first of all: everything at the targets is named by it
        if not (self._leases.by_kafka or locks_work(self.lake)):
            check_alone(self.lake, [flow.name for flow in self._flows])
        self._apply(judge(self.lake, self._connections, self._flows))
        in_force(self.event_log, self._connections, self._flows)
        self.begun = True
        if self._upkeep is not None:
            self._upkeep.thread.start()

    def _watch(self, edits: Edits | None) -> None:
        """Follow the topology file until the run ends or nothing is left to do. Raises
        ReplicationError if only another process can go on, LakeError if the lake is gone."""
        began = checked_at = time.monotonic()
        while not self._stop.wait(LOOK_SECONDS) and not self._all_ended():
            self._follow_leases()
            if time.monotonic() - began > VIEWS_SECONDS:
                self.lake.keep_views(1)
            if time.monotonic() - checked_at < WATCH_SECONDS:
                continue
            checked_at = time.monotonic()
            self.lake.check_session()
            self.lake.check_there()
            self._modes.again()
            try:
                if edits is not None:
                    edits.take_over(self._connections, self._flows)
                self._judge_again()
            except Exception as error:  # noqa: BLE001 - workers go on; the next look tries again
                logger.error(
                    "%s; it is tried again",
                    as_mirrorlake_error(error, "following the topology file"),
                )

    def _follow_leases(self) -> None:
        """Start flows whose lease this process has got, and end those whose lease it has lost."""
        self._here.follow(self._deployment)
        self._modes.follow(self.topology, self._here.tenures)
        self.take_over.follow()

    def _edits(self, begun_with: Topology) -> Edits | None:
        """What follows the topology file; None if the run has no file to follow."""
        config = self._options.config
        if config is None:
            return None
        watch = TopologyWatch(config, begun_with)
        return Edits(watch, self.lake, self.event_log, self._options.chosen, self._apply)

    def _all_ended(self) -> bool:
        """Whether there is nothing left to do. Paused flows wait in a continuous run."""
        if not self._here.wanted:
            return self._options.once and self._landings.all_ended
        return self._here.all_ended

    def _judge_again(self) -> None:
        """Judge flows again once a cluster that was away answers: a flow that must not run ends
        with an incident, topics are left out, and one that waited for leaders begins."""
        if not self._silent.answered:
            return
        silent = self._silent.aliases
        try:
            self._apply(self._judged_late(silent))
        except BaseException:  # the next judgement does what this one left undone
            self._silent.ask_for(self._connections, silent)
            raise

    def _judge_at_last(self) -> None:
        """Judge flows whose clusters did not answer when a run with `--once` began: such a run does
        not ask them again, so no rule has checked what it did there since."""
        worked = all(running.worker.error is None for running in self.running)
        going = (flow for flow in self._flows if not flow.paused)
        silent = self._silent.aliases.intersection(aliases_of(going))
        if silent and worked and not self._landings.errors:
            preflight = self._judged_late(silent)
            away = sorted(silent & preflight.silent.keys())
            unknown = [ClusterUnreachable(preflight.silent[each], alias=each) for each in away]
            self._complaints = [*preflight.complaints(), *unknown]

    def _judged_late(self, silent: Collection[str]) -> Preflight:
        """End the flows that, as is known now, must not run; return the verdict on the others."""
        preflight, refused = judged_late(self._deployment, self._flows, silent)
        # Before the incident is opened: a batch in flight would close it on completion.
        self._here.halt(refused)
        # Before they leave this run: a later judgement knows nothing of them.
        note_refused(self.event_log, refused)
        self._errors += refused.values()
        return preflight

    def _apply(self, preflight: Preflight) -> None:
        """Start and end workers so that the wanted flows run; unchanged flows go on undisturbed."""
        self._connections, self._flows = preflight.connections, list(preflight.flows)
        self._leases.use(preflight.connections)
        self._complaints = [*preflight.complaints()]
        if preflight.to_note:
            self.event_log.clusters(preflight.to_note)
        wanted = {flow.name: flow for flow in preflight.flows if not flow.paused}
        before = self._here.wanted
        self._here.keep(wanted, preflight)
        waits = note_starts_known(self._deployment, wanted.values(), self._options.once)
        self._unbegun = {name: wanted.pop(name).source for name in waits}
        silent = preflight.silent.keys() | self._unbegun.values()
        self._silent.ask_for(self._connections, silent)
        if self._options.once:
            self._beat(list(wanted.values()))
        self._apply_landings(preflight)
        self._here.want(wanted, preflight)
        self._here.follow(self._deployment)
        # After all slow starts: in a new lake this takes as long as the first batch. A run with
        # `--once` notes its mode only once this process holds the flows' leases.
        if not self._options.once:
            self._modes.note(self.topology, list(wanted), "continuous", gone=before)

    def _beat(self, flows: Sequence[ResolvedFlow]) -> None:
        """Write a heartbeat per flow with `--once`, before landing asks for ends, to mirror it."""
        problems = [beat_once(flow, self._connections, self.event_log) for flow in flows]
        self._control_errors += [problem for problem in problems if problem is not None]

    def _apply_landings(self, preflight: Preflight) -> None:
        readers, names = dict[str, list[ResolvedFlow]](), {flow.name for flow in preflight.flows}
        # All flows of the file, not only the chosen ones: another process may produce the others.
        for source, flows in preflight.connections.topology.sources().items():
            begun = [flow for flow in flows if flow.name not in self._unbegun]
            if any(flow.name in names for flow in begun):
                readers[source] = begun
        shared = {
            source
            for source, flows in readers.items()
            if self._leases.by_kafka or any(flow.name not in names for flow in flows)
        }
        self._landings.want(readers, self._deployment, shared)

    def _end(self) -> None:
        """End everything, each flow with a last sample unless another process goes on with it. An
        error at the end is an error of the run."""
        names = self._here.wanted
        always = self._options.once and self.begun
        self._modes.follow(self.topology, self._here.tenures, always)
        self._silent.ask_for(self._connections, ())
        self._landings.stop()
        self._here.stop()
        if self._upkeep is not None:
            self._upkeep.thread.stop()
        self._leases.leave_when_ended({**self._landings.threads, **self._here.producing})
        self._errors += self._landings.errors + self._here.end()
        if self._upkeep is not None:
            self._upkeep.thread.join()
            if self._upkeep.thread.error is not None:
                self._errors.append(self._upkeep.thread.error)
        if self._options.once:
            self._control_errors += [
                error for running in self.running for error in running.control.errors
            ]
        self._leases.close()
        self._errors += self._leases.errors
        if self._stop.is_set() and not self._options.once:
            deserted = [name for name in names if self._here.is_deserted(name)]
            self._modes.note(self.topology, deserted, "stopped")
        self._modes.again()
        if self._modes.error is not None:
            self._errors.append(self._modes.error)
