"""Producing one flow: keeps its producer going, around partitions that wait for an operator.

One thread per flow, so that a slow or unreachable target holds up nobody else; one process at a time, by a lease.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mirrorlake.core.survey import Key
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.causes import FAILURES, cause_of, in_our_words
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.landing import LandingWorker
from mirrorlake.engine.targets import TargetTopics, TopicsUnmade
from mirrorlake.errors import (
    ClusterUnreachable,
    HeldElsewhere,
    InputError,
    MapError,
    MirrorlakeError,
    ReplicationError,
    TargetRefused,
)
from mirrorlake.lake.journal import Journal
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.produce.flow import BatchReport, FlowProducer
from mirrorlake.produce.provenance import Provenance
from mirrorlake.produce.spec import FlowSpec, name_at_target
from mirrorlake.produce.workers import SparkWorkers

logger = logging.getLogger(__name__)

#: How often a flow looks for new commits, and how long it waits after failures in a row, seconds.
LOOK_SECONDS = 0.05
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
#: Incidents of a flow that are over when it comes through again.
PASSING = ("flow_stopped", "flow_waits", "cluster_unreachable")


@dataclass(frozen=True)
class Snapshot:
    """Where a flow was after one look: what was landed before it, whether that was all produced, where it goes on,
    where the map of what it has produced ends (rows of it may still be on their way), the partitions that wait for an
    operator, and the topics that were left out at that look."""

    covered: dict[Key, int]
    caught_up: bool
    floors: dict[Key, int]
    mapped: dict[Key, int]
    held: frozenset[Key]
    left_out: frozenset[str]


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
        journal: Journal,
        landing: LandingWorker,
        report: Callable[[str, BatchReport], None],
        once: bool = False,
        reader: str = "auto",
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self.flow = flow
        self.error: MirrorlakeError | None = None
        self.ended = threading.Event()
        self.targets = TargetTopics(flow, connections, journal, left_out)
        self._lake = lake
        self._stage = stage
        self._connections = connections
        self._journal = journal
        self._landing = landing
        self._report = report
        self._once = once
        self._reader = reader
        self._stop = threading.Event()
        self._wanted = threading.Event()
        self._taken = threading.Event()
        self._snapshot: Snapshot | None = None
        self._again = threading.Event()
        self._refused_here: set[Key] = set()
        self._refused_before = True  # as far as is known, until it was looked
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
        """Where the flow is after its next look; None if it does not come to one in time."""
        self._taken.clear()
        self._wanted.set()
        return self._snapshot if self._taken.wait(seconds) else None

    def mirrors(self, topic: str) -> bool:
        """Whether the flow mirrors a topic of its source."""
        return self.targets.selection.selects(topic) and self.targets.remote_topic(topic) is not None

    def life(self, topic: str) -> int:
        """Which life of a topic is landed now."""
        return self._landing.life(topic)

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
            self.error = self.error or next(iter(self.targets.unmade.values()), None)
            self.ended.set()

    def _goes_on_after(self, error: BaseException, attempt: int) -> bool:
        """Whether to try again: what can pass by itself is tried for ever by a continuous run, and some times by
        `--once`; what only an operator can mend is not."""
        problem = in_our_words(error, f"flow {self.flow.name}")
        over = self._once and (isinstance(error, InputError) or attempt >= len(RETRY_SECONDS))
        if isinstance(error, ReplicationError) or isinstance(problem, MapError) or over:
            logger.error("%s", problem)
            self.error = problem
            if not isinstance(error, HeldElsewhere):  # the flow is well: somebody else does it
                self._journal.incidents.tell(self.flow.name, incident_kind(problem), problem)
            return False
        said = error if isinstance(error, MirrorlakeError) else cause_of(error)
        logger.warning("flow %s: %s; trying again", self.flow.name, said)
        if attempt == 2:
            kind = "cluster_unreachable" if isinstance(error, InputError) else "flow_waits"
            self._journal.incidents.tell(self.flow.name, kind, problem)
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
        except ClusterUnreachable as error:
            if error.facts.get("alias") != self.flow.source:
                raise
            logger.warning("flow %s: %s; producing what is staged", self.flow.name, error)

    def _produce(self) -> bool:
        self._again.clear()
        producer = FlowProducer(
            self._stage,
            LakeMap(self._lake, self.flow.name),
            SparkWorkers(self._lake, self.flow.source),
            self._spec(),
            self.targets.ensure,
        )
        told = False
        try:
            while True:
                ended = self._landing.ended.is_set()
                wanted = self._wanted.is_set()
                # Asked for before the look: what was landed by then is produced once the look finds nothing.
                covered = self._landing.covered() if wanted or ended else {}
                try:
                    report = producer.step()
                except TopicsUnmade:
                    return False
                if report is not None:
                    self._report(self.flow.name, report)
                if not told and (report is not None or ended):
                    self._journal.incidents.came_through([self.flow.name], PASSING)
                    told = True
                last = self._stop.is_set() or (ended and report is None)
                if wanted or last:
                    self._take_snapshot(producer, covered, report is None)
                if last:
                    producer.drain()
                    return True
                if self._again.is_set():
                    return False
                if report is None:
                    self._stop.wait(LOOK_SECONDS)
        finally:
            producer.close()

    def _take_snapshot(self, producer: FlowProducer, covered: dict[Key, int], caught_up: bool) -> None:
        living = {
            key: floor for key, floor in producer.floors().items() if floor.generation == self._landing.generation(*key)
        }
        floors = {key: floor.next for key, floor in living.items()}
        # Of a target topic that was made again the map has nothing yet, however far the one before it went.
        mapped = {key: floor.source for key, floor in living.items() if floor.target is not None}
        self._snapshot = Snapshot(
            covered, caught_up, floors, mapped, producer.spec.held, frozenset(producer.spec.left_out)
        )
        self._wanted.clear()
        self._taken.set()

    def refresh_topics(self) -> None:
        """Follow the source's topics; produce those that the target makes only now from where the map ends."""
        before = self.targets.unmade.keys()
        self.targets.refresh()
        if self.targets.unmade.keys() != before:
            self._again.set()

    def look_at_refused(self) -> None:
        """Close incidents of refused records that were taken since, and go on where an operator said so."""
        if not (self._refused_here or self._refused_before):
            return  # nobody else tells of them
        snapshot = self._snapshot
        waiting = self._journal.incidents.refused(self.flow.name)
        self._refused_before = bool(waiting)
        for topic, partition, last in waiting:
            if snapshot is not None and snapshot.floors.get((topic, partition), 0) > last:
                self._journal.incidents.settle(
                    self.flow.name, "target_refused", topic, partition, "the target took the records"
                )
        if self._refused_here - {(topic, partition) for topic, partition, _ in waiting}:
            self._refused_here.clear()
            self.error = None
            self._again.set()

    def _spec(self) -> FlowSpec:
        flow, settings = self.flow, self.flow.settings
        provenance = None
        if settings.provenance != "none":
            ids = self._connections.identify([flow.source, flow.target])
            provenance = Provenance(ids[flow.source], ids[flow.target], settings.provenance == "strip")
        stopped, skipped = self._journal.incidents.decided(flow.name)
        unmade = tuple(self.targets.unmade)  # as of now: what follows the stage must not change under its feet

        def produced(topic: str) -> str | None:
            return None if topic in unmade else self.targets.produced_topic(topic)

        return FlowSpec(
            flow.name,
            flow.source,
            name_at_target(self._lake, flow.name),
            produced,
            self._connections.client(flow.target, "admin"),
            self._connections.client(flow.target, "producer"),
            settings.produce_tasks,
            settings.delivery == "exactly_once",
            reader=self._reader,
            left_out=(*self.targets.left_out, *unmade, *(() if isinstance(settings.paused, bool) else settings.paused)),
            held=stopped,
            skipped=skipped,
            provenance=provenance,
            on_refused=self._refused,
        )

    def _refused(self, refusal: TargetRefused) -> None:
        """A partition stops, the others go on; a row in `incidents` says what and which offsets (DESIGN 2, law 4)."""
        logger.error("%s", refusal)
        self.error = self.error or refusal
        self._refused_here.add((str(refusal.facts["topic"]), int(str(refusal.facts["partition"]))))
        self._journal.incidents.tell(self.flow.name, "target_refused", refusal)


def incident_kind(error: MirrorlakeError) -> str:
    """The kind of incident that an error is."""
    kinds = {"TargetRefused": "target_refused", "MapError": "map_contradiction", "SourceDataLost": "source_data_lost"}
    return kinds.get(type(error).__name__, "flow_stopped")
