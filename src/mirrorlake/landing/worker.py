"""Landing one source cluster: keeps its streaming query going, around topics that wait.

One worker per source cluster, however many flows read from it; one process at a time, by a lease.
Where processes stand by for each other, a process without the lease waits for it; one that loses it
stands by again, and forgets what it had seen. The query restarts when wanted topics change, were
lost or made again, and when the source was away.
"""

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import Fenced, LeaseTaken, MirrorlakeError
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.renewal import LiveSettings
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.lease import AnyLease, Lease, taken_over
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.lake.table_upkeep import note_removals
from mirrorlake.landing.broken_queries import BrokenQueries
from mirrorlake.landing.checkpoints import application_of, begin_query, forget_query, is_fenced
from mirrorlake.landing.covered_notes import CoveredNotes
from mirrorlake.landing.generations import LakeLandingStore, generations_of
from mirrorlake.landing.land import LandingQuery, start_landing
from mirrorlake.landing.landing_incidents import LandingIncidents
from mirrorlake.landing.plan import LandingPlanner
from mirrorlake.landing.reading_flows import ReadingFlows
from mirrorlake.landing.source import ClusterSource
from mirrorlake.landing.source_comparison import NO_GENERATIONS, CurrentGenerations, Planned
from mirrorlake.landing.source_states import note_fresh_topics
from mirrorlake.landing.unread import UnreadOffsets
from mirrorlake.naming.worker_groups import work_of_landing
from mirrorlake.offsets.positions import TopicAndPartition
from mirrorlake.spark.causes import as_mirrorlake_error, message_of
from mirrorlake.worker import Failure, Retry, Worker

logger = logging.getLogger(__name__)

#: How often the query and its source's topics are checked, and the pauses after failures, seconds.
LOOK_SECONDS = 0.2
COMPARE_SECONDS = 3.5
PAUSES = (1.0, 2.0, 5.0, 10.0)
#: A partition that has just lost its leader mostly gets another one soon: how many times to wait
#: for it, and how long each time, seconds.
LEADERLESS_TRIES, LEADERLESS_SECONDS = 3, 2.0
#: How often to check whether this process has got the lease of another one, seconds.
STANDBY_SECONDS = 0.2
#: How long a run with `--once` waits for another process that lands the same cluster, seconds.
ONCE_WAITS_SECONDS = 600.0
#: How many tries a run with `--once` has for what Spark reports: a dead task, a broker away.
ONCE_TRIES = 3


class LandingWorker:
    """Lands a cluster until `thread` is stopped or, with `once`, up to the ends at the start."""

    def __init__(
        self,
        alias: str,
        deployment: Deployment,
        stage: StageFiles,
        once: bool,
        lease: AnyLease | None = None,
    ) -> None:
        """Prepare; without `lease`, take one in the lake."""
        self.alias = alias
        retry = Retry(self._ends, self._report_failure, PAUSES)
        self.thread = Worker(
            f"landing from cluster {alias}", self._turn, retry, in_words=as_mirrorlake_error
        )
        lake, event_log = deployment.lake, deployment.event_log
        self._lake = lake
        self._flows = ReadingFlows(alias, deployment)
        self._once = once
        self._lock = threading.RLock()
        self._changed = threading.Event()
        self._stopping = self.thread.stopping
        self._incidents = LandingIncidents(alias, event_log)
        self._unread = UnreadOffsets(alias, lake, stage, self._incidents)
        self._states = event_log.states
        self._stage = stage
        self._lease = lease or Lease(lake, work_of_landing(alias))
        self._query: LandingQuery | None = None
        self._waits = False  # for another process that lands
        self._notes = CoveredNotes(lake, alias)
        self._shared = False
        self._forget_what_was_seen()

    def _forget_what_was_seen(self) -> None:
        """Keep only what the lake has, as at a start: another process may have landed since."""
        with self._lock:
            flows = self._flows
            source = ClusterSource(self.alias, lambda: flows.connections, flows.selections)
            store = LakeLandingStore(self._lake, self._stage, self.alias)
            self._planner = LandingPlanner(self.alias, source, store, begins=flows.begins)
            self._covered: dict[TopicAndPartition, int] = {}
            self._covered_in = NO_GENERATIONS
            self._begun: dict[TopicAndPartition, int] = {}
            self._current_generations: CurrentGenerations | None = None
            self._read_at = 0.0
            self._broken = BrokenQueries(self.thread.name)
            self._waiting: MirrorlakeError | None = None

    def set_flows(
        self, flows: Sequence[ResolvedFlow], connections: Connections, shared: bool = False
    ) -> None:
        """Set the flows that read from here; the query restarts if that makes a difference. With
        `shared`, other processes may run some of them."""
        self._shared = shared
        if self._flows.set(flows, connections):
            self._changed.set()

    @property
    def error(self) -> MirrorlakeError | None:
        """The error that ended landing, or that topics wait for a decision; at the end of a run
        with `once`, also records that flows may lack because they had gone on behind a gap."""
        return self.thread.error or self._waiting or (self._unread.reported if self._once else None)

    def covered(self) -> dict[TopicAndPartition, int]:
        """How far each partition was landed: end offsets, transaction markers included."""
        with self._lock:  # offsets covered in one generation must not count for another
            query = self._query
            if query is not None:
                self._covered.update(query.covered())
            elif self._is_elsewhere:
                noted = self._notes.read()
                current = self.generations() if noted else NO_GENERATIONS
                return {
                    place.topic_partition: end
                    for place, end in noted.items()
                    if place == current.place(place.topic_partition)
                }
            # Nothing lies in front of a partition's start, whether or not it holds a record. That
            # is no promise to land from there: only covered offsets are compared with the source.
            return {**self._begun, **self._covered}

    def generations(self) -> CurrentGenerations:
        """The generations that are landed now. Before the first plan: the newest ones in the lake,
        read again from time to time while another process lands."""
        with self._lock:
            old = self._is_elsewhere and time.monotonic() - self._read_at >= COMPARE_SECONDS
            if self._current_generations is None or old:
                self._read_at = time.monotonic()
                self._current_generations = generations_of(self._lake, self.alias)
            return self._current_generations

    @property
    def _is_elsewhere(self) -> bool:
        """Whether another process lands, as far as this one knows."""
        return self._waits or (self._lease.stands_by and not self._lease.held)

    @property
    def lands(self) -> bool:
        """Whether this process lands the cluster now."""
        return self._query is not None

    def _turn(self) -> float | None:
        try:
            return None if self._land_with_lease() else 0.0
        except LeaseTaken:
            raise
        except Exception as error:
            # a failure for lack of the lease, or by a take-over, is no news for operators
            lease = self._lease
            if not lease.stands_by or (lease.held and not isinstance(error, Fenced)):
                raise
            logger.warning("%s: %s", self.thread.name, message_of(error))
            self._forget_what_was_seen()
            return STANDBY_SECONDS

    def _ends(self, error: BaseException, problem: MirrorlakeError, attempt: int) -> bool:
        """Whether a failure ends landing. A run with `once` does not try for ever, nor what only an
        operator can fix; a fenced process does not take back what another one holds."""
        over = self._once and (isinstance(error, MirrorlakeError) or attempt >= ONCE_TRIES)
        return over or isinstance(problem, Fenced)

    def _report_failure(self, failure: Failure) -> None:
        """Open an incident for every flow that reads from here."""
        logger.error("%s", failure.problem)
        self._incidents.failed(self._flows.names(), failure.problem)

    def _land_with_lease(self) -> bool:
        """Land while holding the lease. True at the end, False to begin again."""
        deadline = time.monotonic() + ONCE_WAITS_SECONDS
        while not self._stopping.is_set():
            try:
                self._lease.take()
                break
            except LeaseTaken as taken:
                if self._once and time.monotonic() > deadline:
                    raise
                if self._lease.stands_by:
                    self._stopping.wait(STANDBY_SECONDS)
                    continue
                if not self._waits:  # the other process may have landed records before
                    self._forget_what_was_seen()
                    self._waits = True
                logger.info("%s", taken)
                self._stopping.wait(self._flows.pace.leases)
        self._waits = False
        try:
            return True if self._stopping.is_set() else self._land()
        finally:
            self._lease.release()

    def _land(self) -> bool:
        """Land until the end (True), or until it has to be restarted (False)."""
        self._changed.clear()
        checkpoint = begin_query(self._lake, self.alias)
        try:
            planned = self._plan(checkpoint)
            client, landing, wait = self._flows.reading()
            self._unread.make_up(planned, self._flows.named(), landing, client.now)
        except BaseException:  # no query began under this name
            forget_query(self._lake, self.alias, checkpoint.name)
            raise
        if not planned.plan.starts:
            forget_query(self._lake, self.alias, checkpoint.name)
            return self._wait(planned)
        self._query = query = start_landing(
            self._lake,
            planned.plan,
            landing,
            client.now,
            checkpoint=checkpoint,
            once=self._once,
            is_heartbeats=self._flows.known_heartbeats(),
            heartbeats_wait=wait,
            later=self._lake.later_session,
        )
        try:
            is_over = self._watch(query, planned, client)
        finally:
            try:
                query.stop()
                self.covered()
            finally:  # also if its session is gone: the query is of an older plan
                self._query = None
            if query.sink.compared:
                forget_query(self._lake, self.alias, query.name)
        # What a fenced query reports as covered may be what Delta has skipped.
        self._check_owner(query)
        if not query.sink.compared:
            named = self._flows.named()
            self._unread.make_up(planned, named, landing, client.now, own=query.name)
        if is_over and self._lease.held:
            self._note_covered(True)
        if query.sink.failure is not None:  # of the last batch, or beside a partition that is gone
            raise query.sink.failure
        return is_over

    def _plan(self, checkpoint: Path) -> Planned:
        """Plan a query, and report what operators must know before it runs. Raises Fenced if
        another process has begun one since: the changes are that process's doing."""
        for _ in range(LEADERLESS_TRIES):
            planned = self._planner.plan(self._covered, self._covered_in)
            if not planned.leaderless or self._stopping.wait(LEADERLESS_SECONDS):
                break
        if planned.losses and is_fenced(self._lake, application_of(checkpoint)):
            raise taken_over(work_of_landing(self.alias), self._lease)
        with self._lock:
            self._covered = dict(planned.covered)
            self._covered_in = self._current_generations = planned.current_generations
            self._begun = dict(planned.plan.starts)
        self._waiting = self._incidents.report_plan(planned, self._flows.named())
        note_removals(self._lake, planned.passed_over)  # a later flow may want these records
        names = {topic for topic, _ in planned.plan.starts} & planned.topics.keys()
        ids = {topic: planned.topics[topic].topic_id for topic in sorted(names)}
        admin = self._flows.connections.admin(self.alias)
        note_fresh_topics(self._states, admin, ids, self._flows.keep_configs)
        return planned

    def _watch(
        self, query: LandingQuery, planned: Planned, client: LiveSettings[str | int | bool]
    ) -> bool:
        checked_at, through = time.monotonic(), False
        owned_at = checked_at
        while not self._stopping.wait(LOOK_SECONDS):
            if not self._lease.held:
                raise taken_over(work_of_landing(self.alias), self._lease)
            active = query.active
            if not through and query.began:
                through = True
                self._broken.came_through(self._once)
                self._planner.succeeded(planned.plan.starts.keys())
                self._incidents.succeeded(self._flows.names(), planned)
                if not self._once:  # a run with `once` counts all its tries
                    self.thread.succeeded()
            if not active:
                return self._is_over(query, planned)
            if self._changed.is_set() or (not self._once and client.renewed()):
                return False
            if time.monotonic() - checked_at >= COMPARE_SECONDS and not self._once:
                checked_at = time.monotonic()
                if checked_at - owned_at >= self._flows.pace.owners:
                    owned_at = checked_at
                    self._check_owner(query)
                    self._note_covered()
                if self._planner.differs(planned, self.covered()):
                    self._check_owner(query)
                    return False
        return True

    def _is_over(self, query: LandingQuery, planned: Planned) -> bool:
        """Whether a query that has ended came to its end; else another one is to begin. Raises what
        no other query helps against."""
        # first: whatever else ended the query, to begin again would be to take over
        self._check_owner(query)
        error = query.exception()
        if error is None and query.ended:
            return True
        if query.outgrown:
            return False
        if error is None:
            self._broken.begin_anew("its query was stopped by others")
        elif error is not query.sink.failure:  # which `_land` raises
            self.covered()
            self._broken.failed(error, planned, self._planner, self._covered)
        return False

    def _note_covered(self, is_over: bool = False) -> None:
        """Write down how far this process has come, if others run flows that read from here."""
        if self._shared:
            self._notes.note(self.covered(), self.generations(), is_over)

    def _check_owner(self, query: LandingQuery) -> None:
        """Raise Fenced if another process has taken over."""
        if query.fenced():
            raise taken_over(work_of_landing(self.alias), self._lease)

    def _wait(self, planned: Planned) -> bool:
        """Wait while nothing may be read; returns False once it is time to plan again."""
        while not self._once and not self._stopping.wait(COMPARE_SECONDS):
            if not self._lease.held:
                raise taken_over(work_of_landing(self.alias), self._lease)
            if self._changed.is_set() or self._planner.differs(planned, {}):
                return False
        return True
