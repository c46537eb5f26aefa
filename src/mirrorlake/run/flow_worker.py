"""Producing one flow: keeps its producer going, around partitions that wait for an operator.

One thread per flow: a slow target holds up no other; one process at a time, by a lease.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.topic_sync import TargetTopics, TopicsUnmade
from mirrorlake.errors import ClusterUnusable, MirrorlakeError, ReplicationError
from mirrorlake.kafka.client_settings import Settings
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.lake.decisions import Decided
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lease import AnyLease, taken_over
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.objectives import known_heartbeats
from mirrorlake.lake.other_logs import OtherLogs
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing.source_comparison import CurrentGenerations
from mirrorlake.landing.worker import LandingWorker
from mirrorlake.naming.worker_groups import work_of_flow
from mirrorlake.offsets.positions import PartitionGeneration, Reached, TopicAndPartition
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.produce.flow import FlowProducer, RecordsDeleted
from mirrorlake.produce.spec import FlowSpec
from mirrorlake.produce.workers import SparkWorkers
from mirrorlake.run.flow_failures import FlowFailures
from mirrorlake.run.flow_spec import flow_spec, provenance_of
from mirrorlake.run.limits import limits_of
from mirrorlake.run.snapshot import Snapshot, Snapshots, snapshot_of
from mirrorlake.run.stopped_partitions import StoppedPartitions
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import Retry, Worker

logger = logging.getLogger(__name__)

#: How often a flow looks for new commits in a folder, and for those of this process, seconds.
LOOK_SECONDS = 0.05
#: How long `FlowWorker.snapshot` waits for the flow's next poll, seconds.
SNAPSHOT_SECONDS = 5.0
#: Incidents of a flow that are closed once it completes a poll again.
TRANSIENT_KINDS = ("flow_stopped", "fenced", "flow_waits", "cluster_unreachable")


class FlowWorker:
    """Produces a flow until `thread` is stopped, or until the landing has ended and all is
    produced.

    Its consumer groups see it as their `groups.running_flow.RunningFlow`.
    """

    def __init__(
        self,
        flow: ResolvedFlow,
        deployment: Deployment,
        stage: StageFiles,
        landing: LandingWorker,
        *,
        lease: AnyLease,
        report: Callable[[str, BatchReport], None],
        once: bool,
        reader: str,
        left_out: Mapping[str, str] | None,
    ) -> None:
        self.flow = flow
        incidents = deployment.event_log.incidents
        self._failures = FlowFailures(flow.name, once, lease, incidents)
        retry = Retry(self._failures.ends, self._failures.report)
        self.thread = Worker(
            f"flow {flow.name}", self._turn, retry, self._note_closed, as_mirrorlake_error
        )
        self.targets = TargetTopics(flow, deployment, left_out)
        self._deployment, self._lake = deployment, deployment.lake
        self._stage = stage
        self._connections = deployment.connections
        self._event_log = deployment.event_log
        self._landing = landing
        self._report_batch = report
        self.once = once
        self._reader = reader
        self._snapshots = Snapshots()
        self._again = threading.Event()
        self._stopped = StoppedPartitions(
            flow.name,
            self._lake,
            self.targets,
            incidents=incidents,
            begin_anew=self._again.set,
            limits=self._limits,
        )
        self._written_to: dict[str, int] = {}
        self._losses = self._passes_over = 0
        self._closed: frozenset[str] | None = None
        self._lease = lease
        #: How many times this process has taken the flow's lease.
        self.tenures = 0

    @property
    def error(self) -> MirrorlakeError | None:
        """The error that ended the flow, else the first that waits for an operator's decision."""
        return self.thread.error or self._stopped.error

    def snapshot(self) -> Snapshot | None:
        """The flow's positions after its next poll, or end; None if no poll completes in time."""
        ended = self.thread.ended.is_set()
        return self._snapshots.last if ended else self._snapshots.next(SNAPSHOT_SECONDS)

    def reached(self, keys: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, Reached] | None:
        snapshot = self.snapshot()
        if snapshot is None:
            return None
        return {
            key: Reached(
                snapshot.produced_end(key, self.targets),
                snapshot.mapped.get(key, 0),
                name,
                snapshot.target_generations.get(name, 0),
                snapshot.generations.generation(key),
            )
            for key in keys
            if (name := self.targets.remote_topic(key[0])) is not None
        }

    def mirrors(self, topic: str) -> bool:
        return self.targets.selection.selects(topic)

    def refuses(self, topic: str) -> bool:
        return self.targets.remote_topic(topic) is None

    def losses(self) -> int:
        return self._losses

    def passes_over(self) -> int:
        return self._passes_over

    def other_logs(self) -> OtherLogs:
        return self._event_log.incidents.other_logs(self.flow.name)

    def generation(self, key: TopicAndPartition) -> int:
        return self._landing.generations().generation(key)

    def generations(self) -> CurrentGenerations:
        return self._landing.generations()

    def _turn(self) -> float | None:
        return None if self._with_lease() else 0.0

    def _note_closed(self) -> None:
        """Report, at the end, topics that get no records for now, and decisions that a run with
        `--once` was too late to act on. Control may go on; it resumes no denied topic then."""
        self.targets.flow_ends()
        for why in self.targets.closed().values():
            self._stopped.note(why)
        for topic in sorted(self.targets.decided()) if self.once else ():
            text = f"flow {self.flow.name} did not begin yet what you decided about topic {topic}"
            self._stopped.note(ReplicationError(f"{text}: run it once more", topic=topic))

    def _with_lease(self) -> bool:
        """Produce while holding the lease. Returns True at the end, False to begin again."""
        self._lease.take()
        self.tenures += 1
        try:
            self._refresh()
            return self._produce()
        finally:
            self._lease.release()

    def _refresh(self) -> None:
        """Create the target's missing topics, and keep the existing ones alike. Staged records are
        produced even while the source does not answer."""
        try:
            self.targets.refresh()
            self.targets.kept_alike.sync()
        except ClusterUnusable as error:
            if error.alias != self.flow.source:
                raise
            logger.warning("flow %s: %s; producing what is staged", self.flow.name, error)

    def _produce(self) -> bool:
        self._again.clear()
        decided = self._event_log.incidents.decided(self.flow.name, self.targets.mirror)
        self._stopped.begin()
        clients = [self._connections.live(self.flow.target, role) for role in ("admin", "producer")]
        producer = FlowProducer(
            self._stage,
            LakeMap(self._lake, self.flow.name),
            SparkWorkers(self._lake, self.flow.source, self._small_batch()),
            self._spec(decided, (clients[0].now, clients[1].now)),
            ensure_targets=self.targets.ensure,
            is_heartbeats=known_heartbeats(self._lake, self.flow.name),
            on_part=partial(self._report_batch, self.flow.name),
        )
        try:
            self._stopped.stop_before_holes(producer, self._stage, decided)
            if self._stopped.stop_where_lost(producer, self._target_ends, decided):
                self._losses += 1
                return False
            return self._poll(producer, clients)
        finally:
            producer.close()

    def _poll(
        self, producer: FlowProducer, clients: Sequence[LiveSettings[str | int | bool]]
    ) -> bool:
        """Produce batch after batch. Returns True at the end, False to begin again."""
        reported = False
        while True:
            ended = self._landing.thread.ended.is_set()
            wanted = self._snapshots.wanted
            if not self._lease.held:
                raise taken_over(work_of_flow(self.flow.name), self._lease)
            # Before the poll: what was landed by then is produced once the poll finds nothing.
            # Generations first: offsets covered in an older one must not count for a newer one.
            generations = self._landing.generations()
            covered = self._landing.covered() if wanted or ended else {}
            known = self._lake.known_version("records")
            try:
                report = producer.step()
            except (TopicsUnmade, RecordsDeleted):
                return False
            if report is not None:
                self._failures.batch_done()
                self._report_batch(self.flow.name, report)
            if producer.has_mapped:
                # else a batch whose map rows cannot be written would be retried for ever
                self.thread.succeeded()
            if not reported:
                # any completed poll counts, even one with nothing to produce
                self._event_log.incidents.close_kinds([self.flow.name], TRANSIENT_KINDS)
                reported = True
            if report is None:
                self.targets.caught_up()
            last = self.thread.stopping.is_set() or (ended and report is None)
            if wanted or last:
                self._snapshots.take(
                    snapshot_of(producer, covered, report is None, generations, self._written_to)
                )
            if last:
                if ended:
                    self._stopped.report_behind(list(producer.spec.whole.values()))
                producer.drain()
                return True
            if self._again.is_set() or any(client.renewed() for client in clients):
                return False
            if report is None:
                self._rest(known)

    def _rest(self, known: int | None) -> None:
        """Wait until it is time to look for commits of other processes, until this process has
        committed after version `known` of `records`, or until a caller asks for something."""
        pace, landing = self._connections.topology.lake.pace, self._landing
        until = time.monotonic() + (pace.looks if landing.lands else pace.looks_elsewhere)
        while not self.thread.stopping.wait(LOOK_SECONDS) and time.monotonic() < until:
            asked = self._snapshots.wanted or self._again.is_set() or landing.thread.ended.is_set()
            fresh = self._lake.known_version("records") != known
            if asked or fresh or not self._lease.held:
                return

    def _target_ends(
        self, places: Collection[TopicAndPartition]
    ) -> Mapping[TopicAndPartition, int]:
        return self._connections.admin(self.flow.target).end_offsets(
            places, committed=False, skip_silent=True
        )

    def _limits(self, topics: Collection[str]) -> Mapping[str, Hashable]:
        return limits_of(self._connections.admin(self.flow.target), topics)

    def _small_batch(self) -> int:
        """The most records in a batch that this process produces itself."""
        return self._connections.topology.clusters[self.flow.source].landing.small_batch_records

    def refresh_topics(self) -> None:
        """Follow the source's topics. If a target topic is made only now, begin at the map end."""
        self.targets.refresh(begins=False)
        self._begin_anew_if_different()

    def check_targets(self) -> None:
        """Notice target topics that are gone or made again, and what was decided about them."""
        self.targets.check()
        self._begin_anew_if_different()

    def _begin_anew_if_different(self) -> None:
        """Restart the flow if other topics must not be produced, or if decisions let some go on."""
        if self._closed is not None and (
            self._closed != self.targets.closed().keys() or self.targets.decided()
        ):
            self._again.set()

    def begin_anew(self) -> None:
        """Restart the flow, so that it asks again what the target has."""
        self._again.set()

    def target_generation(self, topic: str) -> int | None:
        return self.targets.target_generation(topic)

    def check_refused(self) -> None:
        """Close incidents of refused records taken since, and go on where so decided."""
        self._stopped.check(self._snapshots.last)

    def _spec(self, decided: Decided, clients: tuple[Settings, Settings]) -> FlowSpec:
        provenance = provenance_of(self.flow, self._deployment)
        self._written_to = {
            name: living.number for name, living in self.targets.generations.living.items()
        }
        self._closed = closed = frozenset(self.targets.closed())
        spec = flow_spec(
            self.flow,
            self._lake,
            self.targets,
            decided=decided,
            clients=clients,
            closed=closed,
            reader=self._reader,
            provenance=provenance,
            on_refused=self._stopped.refused,
            on_parked=self._on_parked,
        )
        self._passes_over += 1
        return spec

    def _on_parked(self, places: Sequence[PartitionGeneration]) -> None:
        self._stopped.parked(places)
        self._passes_over += 1
