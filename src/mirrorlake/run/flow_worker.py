"""Producing one flow: keeps its producer going, around partitions that wait for an operator.

One thread per flow, so that a slow or unreachable target holds up nobody else; one process at a time, by a lease.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.topic_sync import TargetTopics, TopicsUnmade
from mirrorlake.errors import (
    ClusterUnusable,
    InputError,
    LeaseTaken,
    MapError,
    MirrorlakeError,
    ReplicationError,
    TargetRecreated,
    TargetRefused,
)
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import Decided
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing.worker import LandingWorker
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.produce.flow import BatchReport, FlowProducer
from mirrorlake.produce.spec import FlowSpec
from mirrorlake.produce.trimmed import holes_before
from mirrorlake.produce.workers import SparkWorkers
from mirrorlake.run.flow_spec import Settings, flow_spec, provenance_of
from mirrorlake.run.snapshot import Snapshot, snapshot_of
from mirrorlake.spark.causes import FAILURES, cause_of, in_our_words

logger = logging.getLogger(__name__)

#: How often a flow looks for new commits, and how long it waits after failures in a row, seconds.
LOOK_SECONDS = 0.05
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
#: Incidents of a flow that are over when it comes through again.
PASSING = ("flow_stopped", "flow_waits", "cluster_unreachable")


class FlowWorker:
    """Produces a flow in a thread of its own until `stop`, or until the landing has ended and all is produced.

    `error` is what an operator has to know, None if all went well.
    """

    def __init__(
        self,
        flow: ResolvedFlow,
        lake: Lake,
        stage: StageFiles,
        connections: Connections,
        event_log: EventLog,
        landing: LandingWorker,
        report: Callable[[str, BatchReport], None],
        once: bool = False,
        reader: str = "auto",
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self.flow = flow
        self.error: MirrorlakeError | None = None
        self.ended = threading.Event()
        self.targets = TargetTopics(flow, lake, connections, event_log, left_out)
        self._lake = lake
        self._stage = stage
        self._connections = connections
        self._event_log = event_log
        self._landing = landing
        self._report = report
        self._once = once
        self._reader = reader
        self._stop = threading.Event()
        self._wanted = threading.Event()
        self._taken = threading.Event()
        self._snapshot: Snapshot | None = None
        self._again = threading.Event()
        self._refused_here: set[TopicAndPartition] = set()
        self._refused_before = True  # as far as is known, until it was checked
        self._written_to: dict[str, int] = {}
        self._closed: frozenset[str] | None = None
        self._lease = Lease(lake, f"flow {flow.name}")
        self._thread = threading.Thread(target=self._run, name=f"produce {flow.name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end; the batch in hand is finished."""
        self._stop.set()

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    @property
    def last_snapshot(self) -> Snapshot | None:
        """Where the flow was when it was last asked, or at its end."""
        return self._snapshot

    def snapshot(self, seconds: float) -> Snapshot | None:
        """Where the flow is after its next poll; None if it does not come to one in time."""
        self._taken.clear()
        self._wanted.set()
        return self._snapshot if self._taken.wait(seconds) else None

    def mirrors(self, topic: str) -> bool:
        """Whether the flow mirrors a topic of its source."""
        return self.targets.selection.selects(topic) and self.targets.remote_topic(topic) is not None

    def topic_generation(self, topic: str) -> int:
        """Which generation of a topic is landed now."""
        return self._landing.topic_generation(topic)

    def _run(self) -> None:
        attempt = 0
        try:
            while not self._stop.is_set():
                try:
                    if self._hold():
                        return
                    attempt = 0
                except FAILURES as error:
                    if not self._goes_on_after(error, attempt):
                        return
                    self._stop.wait(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
                    attempt += 1
        except BaseException as error:
            self.error = ReplicationError(f"flow {self.flow.name} stopped: {cause_of(error)}")
            logger.exception("flow %s stopped", self.flow.name)
        finally:
            self.error = self.error or next((why for why in self.targets.closed().values() if why is not None), None)
            self.ended.set()

    def _goes_on_after(self, error: BaseException, attempt: int) -> bool:
        """Whether to try again: what can pass by itself is tried for ever by a continuous run, and some times by
        `--once`; what only an operator can mend is not."""
        problem = in_our_words(error, f"flow {self.flow.name}")
        over = self._once and (isinstance(error, InputError) or attempt >= len(RETRY_SECONDS))
        if isinstance(error, ReplicationError) or isinstance(problem, MapError) or over:
            logger.error("%s", problem)
            self.error = problem
            if not isinstance(error, LeaseTaken):  # the flow is healthy: somebody else does it
                self._event_log.incidents.tell(self.flow.name, problem.incident_kind, problem)
            return False
        said = error if isinstance(error, MirrorlakeError) else cause_of(error)
        logger.warning("flow %s: %s; trying again", self.flow.name, said)
        if attempt == 2:
            kind = "cluster_unreachable" if isinstance(error, InputError) else "flow_waits"
            self._event_log.incidents.tell(self.flow.name, kind, problem)
        return True

    def _hold(self) -> bool:
        """Produce as the only process that does. True at the end, False to begin again."""
        self._lease.take()
        try:
            self._refresh()
            return self._produce()
        finally:
            self._lease.release()

    def _refresh(self) -> None:
        """Make the target's topics. What is staged is produced even while the source does not answer."""
        try:
            self.targets.refresh()
        except ClusterUnusable as error:
            if error.alias != self.flow.source:
                raise
            logger.warning("flow %s: %s; producing what is staged", self.flow.name, error)

    def _produce(self) -> bool:
        self._again.clear()
        decided = self._event_log.incidents.decided(self.flow.name)
        clients = [self._connections.live(self.flow.target, role) for role in ("admin", "producer")]
        producer = FlowProducer(
            self._stage,
            LakeMap(self._lake, self.flow.name),
            SparkWorkers(self._lake, self.flow.source),
            self._spec(decided, (clients[0].now, clients[1].now)),
            self.targets.ensure,
        )
        told = False
        try:
            self._stop_before_holes(producer, decided)
            while True:
                ended = self._landing.ended.is_set()
                wanted = self._wanted.is_set()
                # Asked for before the poll: what was landed by then is produced once the poll finds nothing.
                covered = self._landing.covered() if wanted or ended else {}
                try:
                    report = producer.step()
                except TopicsUnmade:
                    return False
                if report is not None:
                    self._report(self.flow.name, report)
                if not told and (report is not None or ended):
                    self._event_log.incidents.came_through([self.flow.name], PASSING)
                    told = True
                last = self._stop.is_set() or (ended and report is None)
                if wanted or last:
                    self._snapshot = snapshot_of(producer, covered, report is None, self._landing, self._written_to)
                    self._wanted.clear()
                    self._taken.set()
                if last:
                    producer.drain()
                    return True
                if self._again.is_set() or any(item.renewed() for item in clients):
                    return False
                if report is None:
                    self._stop.wait(LOOK_SECONDS)
        finally:
            producer.close()

    def refresh_topics(self) -> None:
        """Follow the source's topics; produce those that the target makes only now from where the map ends."""
        self.targets.refresh(begins=False)
        self._begin_anew_if_different()

    def check_targets(self) -> None:
        """Notice target topics that are gone, or were made again, and what was decided about them."""
        self.targets.check()
        self._begin_anew_if_different()

    def _begin_anew_if_different(self) -> None:
        """Let the flow begin anew if it leaves out other topics than those that must not be produced now, or if an
        operator has decided how some go on."""
        if self._closed is not None and (self._closed != self.targets.closed().keys() or self.targets.decided()):
            self._again.set()

    def target_generation(self, topic: str) -> int | None:
        """Which generation of its target topic a source topic is produced to; None where it is over, and no other one
        has begun."""
        return self.targets.target_generation(topic)

    def check_refused(self) -> None:
        """Close incidents of refused records that were taken since, and go on where an operator said so."""
        if not (self._refused_here or self._refused_before):
            return  # nobody else tells of them
        snapshot = self._snapshot
        waiting = self._event_log.incidents.refused(self.flow.name)
        self._refused_before = bool(waiting)
        for kind, topic, partition, last in waiting:
            taken = snapshot is not None and snapshot.floors.get((topic, partition), 0) > last
            if taken and kind == TargetRefused.incident_kind:
                self._event_log.incidents.settle(self.flow.name, kind, topic, partition, "the target took the records")
        if self._refused_here - {(item.topic, item.partition) for item in waiting}:
            self._refused_here.clear()
            self.error = None
            self._again.set()

    def _stop_before_holes(self, producer: FlowProducer, decided: Decided) -> None:
        """Leave out partitions of which the stage has lost what this flow lacks, until an operator has decided."""
        found = holes_before(self._lake, self._stage, producer, decided.trimmed)
        news = {key: problem for key, problem in found.items() if key not in decided.stopped}
        if news:
            problem = next(iter(news.values()))
            logger.error("%s (%d partitions in all)", problem, len(news))
            self.error = self.error or problem
            self._refused_here |= news.keys()
            self._event_log.incidents.tell_all(self.flow.name, problem.incident_kind, list(news.values()))
            producer.spec = replace(producer.spec, blocked=producer.spec.blocked | news.keys())

    def _spec(self, decided: Decided, clients: tuple[Settings, Settings]) -> FlowSpec:
        provenance = provenance_of(self.flow, self._lake, self._connections)
        self._written_to = {name: living.number for name, living in self.targets.generations.living.items()}
        self._closed = closed = frozenset(self.targets.closed())
        return flow_spec(
            self.flow, self._lake, self.targets, decided, clients, closed, self._reader, provenance, self._refused
        )

    def _refused(self, refusal: TargetRefused) -> None:
        """A partition stops, the others go on; a row in `incidents` says what and which offsets (DESIGN.md, "Nothing
        silently")."""
        logger.error("%s", refusal)
        self.targets.check()
        if refusal.topic in self.targets.closed():
            self._again.set()  # the topic is gone or another one; that has an incident of its own
            return
        if isinstance(refusal, TargetRecreated):
            self._contradicted(refusal)
            return
        self.error = self.error or refusal
        self._refused_here.add(refusal.topic_partition)
        self._event_log.incidents.tell(self.flow.name, refusal.incident_kind, refusal)

    def _contradicted(self, refusal: TargetRecreated) -> None:
        """Offsets below the map's end in the topic that was noted: it has fewer records than it had."""
        problem = MapError(
            f"{refusal.message}; its id is the one that it was, so the target has lost records of it",
            topic=refusal.topic,
            partition=refusal.partition,
            first_offset=refusal.first_offset,
            last_offset=refusal.last_offset,
        )
        self.error = self.error or problem
        self._event_log.incidents.tell(self.flow.name, problem.incident_kind, problem)
