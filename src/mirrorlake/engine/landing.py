"""Landing one source cluster: keeps its streaming query going, around topics that wait for an operator.

One worker per source cluster, however many flows read from it; one process at a time, by a lease. The query is started
anew when other topics are wanted, when topics were lost or made again, and when the source was away.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from mirrorlake.core.changes import Change
from mirrorlake.core.policy import escape
from mirrorlake.core.selection import union_pattern
from mirrorlake.core.survey import Key, Life, Loss, blocked_topics, survey
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.causes import FAILURES, cause_of, in_our_words
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.landing_query import progress_ends, stop_between_batches
from mirrorlake.engine.losses import lost, waiting
from mirrorlake.errors import HeldElsewhere, MirrorlakeError, ReplicationError, SourceDataLost
from mirrorlake.kafka.access import unreadable
from mirrorlake.lake.journal import Journal
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.land import (
    LandingPlan,
    checkpoint_ends,
    continues,
    forget_checkpoints,
    start_landing,
)
from mirrorlake.lake.lease import Lease
from mirrorlake.lake.lives import begin_lives, decisions_of, landed_ends, lives_of, passed_ends

logger = logging.getLogger(__name__)

#: How often the query is looked at, how often its source's topics are, and the waits after failures, seconds.
LOOK_SECONDS = 0.2
SURVEY_SECONDS = 5.0
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0)
#: How long `--once` waits for another process that lands the same cluster.
ONCE_WAITS_SECONDS = 600.0
#: How Spark's Kafka source says that offsets were not there any more.
_LOST = (
    "KafkaIllegalStateException",
    "DATA_LOSS",
    "may have been lost",
    "OffsetOutOfRange",
    "were gone",
    "was changed",
)


#: How often a run with an end tries again what Spark reports: a task that died, a broker that was away for a moment.
ONCE_TRIES = 3


class LandingWorker:
    """Lands a cluster in a thread of its own until `stop`, or, `once`, up to the end offsets seen at the start.

    `ended` is set when nothing more will be landed; `error` then says why, if it did not end in order.
    """

    def __init__(self, alias: str, lake: Lake, connections: Connections, journal: Journal, once: bool) -> None:
        self.alias = alias
        self.ended = threading.Event()
        self.error: MirrorlakeError | None = None
        self._lake = lake
        self._connections = connections
        self._journal = journal
        self._once = once
        self._lock = threading.Lock()
        self._flows: list[ResolvedFlow] = []
        self._changed = threading.Event()
        self._stop = threading.Event()
        self._query: StreamingQuery | None = None
        self._covered: dict[Key, int] = {}
        self._generations: dict[str, int] = {}
        self._lives: dict[str, Life] = {}
        self._lease = Lease(lake, f"landing of cluster {alias}")
        self._blocked: frozenset[str] = frozenset()
        self._thread = threading.Thread(target=self._run, name=f"land {alias}", daemon=True)

    def want(self, flows: Sequence[ResolvedFlow], connections: Connections) -> None:
        """Say which flows read from here; the query is started anew if that makes a difference."""
        with self._lock:
            before = self._read() if self._flows else None
            self._flows, self._connections = list(flows), connections
            same = before == self._read()
        if not same:
            self._changed.set()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end; the batch in hand is finished."""
        self._stop.set()

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def covered(self) -> dict[Key, int]:
        """How far each partition was landed: end offsets, transaction markers included."""
        query = self._query
        if query is not None:
            self._covered.update(progress_ends(query))
        return dict(self._covered)

    def generation(self, topic: str) -> int:
        """Which life of a topic is landed now."""
        return self._generations.get(topic, 0)

    def _read(self) -> object:
        """What decides what the query reads, and how."""
        return self._pattern(self._flows), self._connections.topology.clusters[self.alias]

    def _pattern(self, flows: Sequence[ResolvedFlow]) -> str:
        aliases = self._connections.topology.aliases
        return union_pattern([flow.selection(aliases) for flow in flows])

    def _run(self) -> None:
        attempt = 0
        try:
            while not self._stop.is_set():
                try:
                    if self._hold(self._land):
                        return
                    attempt = 0
                except FAILURES as error:
                    problem = self._told(error)
                    if self._once and (isinstance(error, MirrorlakeError) or attempt >= ONCE_TRIES):
                        self.error = problem
                        return
                    self._stop.wait(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
                    attempt += 1
        except BaseException as error:
            self.error = ReplicationError(f"landing of cluster {self.alias} stopped: {cause_of(error)}")
            logger.exception("landing of cluster %s stopped", self.alias)
        finally:
            self.ended.set()

    def _hold(self, work: Callable[[], bool]) -> bool:
        """Do it as the only process that does."""
        deadline = time.monotonic() + ONCE_WAITS_SECONDS
        while not self._stop.is_set():
            try:
                self._lease.take()
                break
            except HeldElsewhere as held:
                if self._once and time.monotonic() > deadline:
                    raise
                logger.info("%s", held)
                self._stop.wait(2.0)
        try:
            return True if self._stop.is_set() else work()
        finally:
            self._lease.release()

    def _land(self) -> bool:
        """Land until the end (True), or until it has to be started anew (False)."""
        self._changed.clear()
        plan = self._look_around()
        with self._lock:
            cluster = self._connections.topology.clusters[self.alias]
        query = start_landing(self._lake, self._connections.spark(self.alias), plan, cluster.landing, self._once)
        self._query = query
        self._journal.incidents.came_through([flow.name for flow in self._flows], ("landing_failed",))
        try:
            return self._watch(query, plan)
        finally:
            stop_between_batches(query)
            self.covered()
            self._query = None

    def _watch(self, query: StreamingQuery, seen: LandingPlan) -> bool:
        looked = time.monotonic()
        while not self._stop.wait(LOOK_SECONDS):
            if not query.isActive:
                error = query.exception()
                if error is not None:
                    self._query_failed(error, seen)
                return error is None
            if self._changed.is_set():
                return False
            if time.monotonic() - looked >= SURVEY_SECONDS and not self._once:
                looked = time.monotonic()
                if self._differs(seen):
                    return False
        return True

    def _query_failed(self, error: StreamingQueryException, seen: LandingPlan) -> None:
        """Lost data is found out by comparing, and only the topics concerned are left out; anything else is raised."""
        if not any(sign in str(error) for sign in _LOST):
            raise error
        self.covered()
        if self._look_around().partitions.keys() >= seen.partitions.keys():
            raise SourceDataLost(
                f"landing from cluster {self.alias} stopped: {cause_of(error)}; look at the source topics",
                source=self.alias,
            )

    def _differs(self, seen: LandingPlan) -> bool:
        """Whether a topic vanished, was made again, or was decided about since the query was planned."""
        topics, ids = self._topics()
        if self._blocked:  # else nobody but this worker begins lives: a query every few seconds is worth to be spared
            self._lives = lives_of(self._lake, self.alias)
        self._begin({name: Life(0, ids[name]) for name in ids if name not in self._lives})
        remade = any(self._lives[name].topic_id != ids[name] for name in ids if name not in self._blocked)
        if remade or not seen.partitions.keys() <= topics.keys():
            return True
        return (
            bool(self._blocked) and blocked_topics(decisions_of(self._lake, self.alias)) & ids.keys() != self._blocked
        )

    def _begin(self, lives: Mapping[str, Life]) -> None:
        """Write down the lives of topics that begin now."""
        begin_lives(self._lake, self.alias, lives)
        self._lives = {**self._lives, **lives}

    def _topics(self) -> tuple[dict[str, int], dict[str, str]]:
        """Partition counts and ids of the selected topics that are there now."""
        admin = self._connections.admin(self.alias)
        with self._lock:
            selections = [flow.selection(self._connections.topology.aliases) for flow in self._flows]
        topics = {
            name: info.partitions
            for name, info in admin.topics().items()
            # What the pattern matches: Spark wants the offsets of all that it will read.
            if any(selection.lands(name) for selection in selections)
        }
        ids = admin.topic_ids(list(topics))
        return {name: topics[name] for name in ids}, ids

    def _look_around(self) -> LandingPlan:
        """Compare the source with what was landed, tell what was lost, and plan the query around it."""
        admin = self._connections.admin(self.alias)
        with self._lock:
            flows = list(self._flows)
        pattern = self._pattern(flows)
        topics, ids = self._topics()
        lives = lives_of(self._lake, self.alias)
        self._drop_elder(lives)
        landed, passed = self._landed(ids.keys(), lives)
        starts = admin.start_offsets([key for key in landed if key[1] < topics.get(key[0], 0)])
        decisions = decisions_of(self._lake, self.alias)
        found = survey(ids, lives, landed, starts, decisions, passed)
        self._lives = lives
        self._begin(found.new_lives)
        self.error = waiting(self.alias, {item.topic for item in decisions if item.open} & ids.keys())
        self._tell_losses(flows, found.losses)
        self._tell_gone(flows, lives.keys() - ids.keys())
        self._blocked, self._generations = found.blocked, dict(found.generations)
        # One topic that may not be read would stop the query for all; `engine/access.py` tells of it.
        closed = found.blocked | unreadable(admin.client, ids)
        if closed:
            pattern = f"(?!(?:{'|'.join(escape(name) for name in sorted(closed))})$)(?:{pattern})"
        wanted = {name: count for name, count in topics.items() if name not in closed}
        # Spark takes every topic in which it finds the pattern, not those that match it as a whole.
        plan = LandingPlan(self.alias, f"^(?:{pattern})$", wanted, found.starts, found.generations)
        if not continues(self._lake, plan):
            forget_checkpoints(self._lake, self.alias)
        return plan

    def _landed(self, topics: Collection[str], lives: Mapping[str, Life]) -> tuple[dict[Key, int], dict[Key, int]]:
        """How far the selected topics were landed: by this process, by the checkpoint, or by the tables; and how far
        they were seen to be."""
        known = {
            key: end
            for key, end in checkpoint_ends(self._lake, self.alias).items()
            if lives.get(key[0], Life(0, "")).generation == 0
        }
        known.update(self._covered)
        passed: dict[Key, int] = {}
        unknown = (set(topics) & lives.keys()) - {topic for topic, _ in known}
        if unknown:
            for key, end in landed_ends(self._lake, self.alias, lives).items():
                known[key] = max(known.get(key, 0), end)
            first_lives = {topic for topic in unknown if lives[topic].generation == 0}
            passed = {key: end for key, end in passed_ends(self._lake, self.alias).items() if key[0] in first_lives}
        return {key: end for key, end in known.items() if key[0] in topics}, passed

    def _drop_elder(self, lives: Mapping[str, Life]) -> None:
        """Forget how far elder lives were landed."""
        for key in list(self._covered):
            life = lives.get(key[0])
            if life is not None and life.generation != self._generations.get(key[0], 0):
                del self._covered[key]

    def _tell_losses(self, flows: Sequence[ResolvedFlow], losses: Sequence[Loss]) -> None:
        aliases = self._connections.topology.aliases
        for loss in losses:
            for flow in flows:
                if flow.selection(aliases).selects(loss.topic):
                    problem = lost(self.alias, flow.name, loss)
                    logger.error("%s", problem)
                    self._journal.incidents.tell(flow.name, loss.kind, problem)
                    self.error = self.error or problem

    def _tell_gone(self, flows: Sequence[ResolvedFlow], gone: Collection[str]) -> None:
        """A topic that was deleted at the source stays on the target; it is said once."""
        for flow in flows:
            selection = flow.selection(self._connections.topology.aliases)
            told = {change.resource for change in self._journal.history(flow.name, "topic") if change.outcome == "gone"}
            news = sorted(name for name in set(gone) - told if selection.selects(name))
            for name in news:
                logger.warning("topic %s is not at cluster %s any more; its mirror stays", name, self.alias)
            rows = [Change("topic", name, None, None, "gone", "deleted at the source") for name in news]
            self._journal.record(flow.name, rows)

    def _told(self, error: BaseException) -> MirrorlakeError:
        """Tell the operators of every flow that reads from here; returns the error in our words."""
        problem = in_our_words(error, f"landing from cluster {self.alias}")
        logger.error("%s", problem)
        for flow in self._flows:
            self._journal.incidents.tell(flow.name, "landing_failed", problem)
        return problem
