"""Control: what keeps the two sides of a flow alike beside records, each task at its own interval.

A thread per flow, so that a slow cluster never holds up records. A task that fails is tried again
at its next turn, or after RETRY_SECONDS if that is later; the failure is an incident until the task
succeeds. A run with `--once` tries twice.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.control.acl_reports import LEFT, left_acls
from mirrorlake.errors import LeaseTaken, ReplicationError
from mirrorlake.groups.group_sync import GroupTurns
from mirrorlake.kafka.connections import Connections
from mirrorlake.kafka.values import Acl
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.landing.source_states import SourceNotes
from mirrorlake.mm2.heartbeat_topics import HeartbeatTopics
from mirrorlake.mm2.mirror_topics import CheckpointTopic, Heartbeats, OffsetSyncTopic
from mirrorlake.run.control_incidents import ControlIncidents
from mirrorlake.run.flow_worker import FlowWorker
from mirrorlake.run.offset_syncs import OffsetSyncs
from mirrorlake.run.samples import FlowLag, Sampler
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import Retry, Worker

logger = logging.getLogger(__name__)

HEARTBEATS, SAMPLES, TURN = "heartbeats", "samples", "turn"
#: How often target topics are compared at least, and refused records checked, seconds.
CHECK_SECONDS = 10.0
#: How often a source is asked for configs and ACLs that the flow does not sync, seconds.
NOTES_SECONDS = 60.0
#: The least pause of a task that failed, seconds: heartbeats would otherwise complain every second.
RETRY_SECONDS = 10.0
#: A task's next turn comes after at least this many times the CPU time of its last one: with
#: thousands of partitions or groups each task takes a twentieth of a core, and runs less often.
SHARE = 20.0
#: How long commands may move groups, seconds, until operators learn that the flow moves none.
MOVED_SECONDS = 1800.0


@dataclass
class ControlTask:
    """A task that runs every `seconds`, and less often if a turn takes long. `spent` is the CPU
    time of the last turn, `due` the time of the next one by the monotonic clock. A task that is not
    `once` runs only in the loop, not at the end of a run."""

    name: str
    seconds: float
    work: Callable[[], object]
    due: float = 0.0
    once: bool = True
    spent: float = 0.0

    def next_due(self, now: float, spent: float, pause: float) -> None:
        """Note a turn's CPU time, of this thread, and wait at least `pause` seconds. The smaller of
        the last two turns counts: a first turn has to learn what later ones know."""
        self.spent, before = spent, self.spent
        self.due = now + max(pause, self.seconds, SHARE * min(spent, before))


class ControlLoop:
    """The control tasks of one flow: `run_once` does each once, `thread` repeats them until stop.

    `errors` are the failures of a run with `--once`, which are incidents as well.
    """

    def __init__(
        self,
        flow: ResolvedFlow,
        deployment: Deployment,
        worker: FlowWorker,
        sampled: Callable[[str, FlowLag], None] | None = None,
    ) -> None:
        self.flow = flow
        connections, event_log = deployment.connections, deployment.event_log
        self._lake = deployment.lake
        self._connections = connections
        self._event_log = event_log
        self._flow_worker = worker
        published = CheckpointTopic(flow, connections, event_log)
        self.groups = GroupTurns(flow, deployment, worker, published)
        source = connections.admin(flow.source)
        settings = partial(connections.client, flow.source, "consumer")
        self._heartbeats = HeartbeatTopics(
            flow.name, deployment.lake, source, settings, flow.selection.selects
        )
        self._sampler = Sampler(
            flow,
            deployment,
            worker.targets,
            on_loss=worker.begin_anew,
            is_heartbeats=self._heartbeats.__contains__,
            once=worker.once,
        )
        self._sampled = sampled or (lambda flow, lag: None)
        self.errors: list[ReplicationError] = []
        self._incidents = ControlIncidents(flow.name, event_log)
        self._acls_left: Mapping[Acl, str | None] | None = None  # None: not checked yet
        self._moved_since: float | None = None  # since when commands move groups at each turn
        self._tasks = self._made()
        self._begun: list[ControlTask] | None = None  # the thread's tasks
        retry = Retry(report=lambda failure: self._incidents.failed(TURN, failure.error))
        self.thread = Worker(
            f"control of flow {flow.name}", self._turn, retry, in_words=as_mirrorlake_error
        )

    def _made(self) -> list[ControlTask]:
        settings, flow = self.flow.settings, self.flow
        targets = self._flow_worker.targets
        tasks: list[ControlTask] = []

        def add(name: str, seconds: float, work: Callable[[], object], once: bool = True) -> None:
            tasks.append(ControlTask(name, seconds, work, once=once))

        # `TargetTopics.refresh` gives new topics ACLs and configs: these follow later changes.
        if settings.sync_topic_acls_enabled:
            add("acls", settings.sync_topic_acls_interval_seconds, self._sync_acls)
        if not (settings.sync_topic_acls_enabled and settings.sync_topic_configs_enabled):
            notes = SourceNotes(flow, self._connections.admin(flow.source), self._event_log.states)
            add("states", NOTES_SECONDS, notes.note)
        refresh = settings.refresh_topics_interval_seconds
        if settings.refresh_topics_enabled:
            add("topics", refresh, self._flow_worker.refresh_topics)
        if not settings.refresh_topics_enabled or refresh > CHECK_SECONDS:
            add("target topics", CHECK_SECONDS, self._flow_worker.check_targets, once=False)
        if settings.sync_topic_configs_enabled:
            add("configs", settings.sync_topic_configs_interval_seconds, self._sync_configs)
        emitting = settings.emit_checkpoints_interval_seconds
        if settings.emit_checkpoints_enabled:
            add("checkpoints", emitting, self.groups.source.checkpoint)
            if settings.sync_group_offsets_enabled:
                seconds = settings.sync_group_offsets_interval_seconds
                add("group offsets", seconds, self._sync_groups)
        add("heartbeats topics", max(refresh, CHECK_SECONDS), self._heartbeats.look)
        if settings.emit_offset_syncs_enabled:
            topic = OffsetSyncTopic(flow, self._connections, self._event_log)
            syncs = OffsetSyncs(
                flow.name, self._lake, topic, targets.remote_topic, targets.target_generation
            )
            add("offset syncs", emitting, syncs.emit)
        if settings.emit_heartbeats_enabled:
            beat = Heartbeats(flow, self._connections, self._event_log).beat
            add(HEARTBEATS, settings.emit_heartbeats_interval_seconds, beat, once=False)
        add("refused records", CHECK_SECONDS, self._flow_worker.check_refused)
        return tasks

    def _sync_configs(self) -> None:
        """Sync configs. Fails while some cannot be made as at the source."""
        self._flow_worker.targets.kept_alike.sync_configs()
        _check_alike("configs", self._flow_worker.targets.configs.undone)

    def _sync_acls(self) -> None:
        """Sync ACLs, and fail as with configs. Those that were made under another policy wait for
        an operator, who learns of each change of these."""
        self._flow_worker.targets.kept_alike.sync_acls()
        acls, incidents = self._flow_worker.targets.acls, self._event_log.incidents
        if acls.left is not None and acls.left != self._acls_left:
            if acls.left:
                incidents.open(self.flow.name, LEFT, left_acls(self.flow.name, acls.left))
            else:
                incidents.close_kinds([self.flow.name], [LEFT])
            self._acls_left = acls.left
        _check_alike("ACLs", acls.refused)

    def _sync_groups(self) -> None:
        """Set positions of groups. While a command moves groups, wait for the next turn; fail in a
        run with `--once`, without one, and when the command does not end within MOVED_SECONDS."""
        try:
            self.groups.target.sync()
        except LeaseTaken as taken:
            now = time.monotonic()
            self._moved_since = now if self._moved_since is None else self._moved_since
            if self._flow_worker.once or now - self._moved_since >= MOVED_SECONDS:
                raise
            logger.info("flow %s: %s; group positions wait", self.flow.name, taken)
        else:
            self._moved_since = None

    def run_once(self) -> None:
        """Do every task, and failed ones once more. No heartbeats: no flow would mirror them."""
        self._incidents.not_done([*(task.name for task in self._tasks), SAMPLES])
        self._do_all([task for task in self._tasks if task.once])

    def sample(self) -> None:
        """Write one sample of each partition's positions. A flow that ended with an error gets
        none, or it would look as if it ran."""
        if self._flow_worker.thread.error is not None and not self.thread.stopping.is_set():
            return
        lag = self._sampler.sample(self._flow_worker.snapshot)
        if lag is not None:
            self._sampled(self.flow.name, lag)

    def finish(self) -> None:
        """Take a last sample, at the flow's end."""
        self._sampler.ask_for_all()
        self._do_all([self._sampling()])

    def _turn(self) -> float:
        """Do the tasks that are due; return the seconds until the next one is."""
        tasks = self._begun = self._begun or self._begin()
        for task in tasks:
            if not self.thread.stopping.is_set() and time.monotonic() >= task.due:
                began = time.thread_time()
                self._do(task)
                spent = time.thread_time() - began
                pause = RETRY_SECONDS if self._incidents.is_failing(task.name) else 0.0
                task.next_due(time.monotonic(), spent, pause)
        if self._incidents.is_failing(TURN):
            self._incidents.succeeded(TURN)
        return max(0.05, min(task.due for task in tasks) - time.monotonic())

    def _sampling(self) -> ControlTask:
        return ControlTask(
            SAMPLES, self.flow.settings.sample_positions_interval_seconds, self.sample
        )

    def _begin(self) -> list[ControlTask]:
        sampling = self._sampling()
        sampling.due = time.monotonic() + min(CHECK_SECONDS, sampling.seconds)
        tasks = [*self._tasks, sampling]
        self._incidents.not_done(task.name for task in tasks)
        return tasks

    def _do_all(self, tasks: Sequence[ControlTask]) -> None:
        """Do tasks at the end of a run, where they have no next turn."""
        for task in tasks:
            self._do(task)
        problems = [self._do(task) for task in tasks if self._incidents.is_failing(task.name)]
        self.errors += [problem for problem in problems if problem is not None]

    def _do(self, task: ControlTask) -> ReplicationError | None:
        """Run a task once; return the error that operators see, if the turn before failed too."""
        try:
            task.work()
        except Exception as error:  # noqa: BLE001 - the other tasks go on, and it is an incident
            return self._incidents.failed(task.name, error)
        self._incidents.succeeded(task.name)
        return None


def _check_alike(what: str, refused: Sequence[str]) -> None:
    """Raise ReplicationError if configs or ACLs are not as at the source; `refused` says why."""
    if refused:
        raise ReplicationError(
            f"{len(refused)} {what} of the target are not as at the source; the first reason: "
            f"{refused[0]}; the table `changes` has all of them"
        )


def beat_once(
    flow: ResolvedFlow, connections: Connections, event_log: EventLog
) -> ReplicationError | None:
    """Write a flow's heartbeat, with `--once`, in two attempts; return the error to show."""
    if not flow.settings.emit_heartbeats_enabled:
        return None
    news = ControlIncidents(flow.name, event_log)
    heartbeats = Heartbeats(flow, connections, event_log)
    for _attempt in range(2):
        try:
            heartbeats.beat()
        except Exception as error:  # noqa: BLE001 - records go on without it, and it is an incident
            problem = news.failed(HEARTBEATS, error)
        else:
            news.succeeded(HEARTBEATS)
            return None
    return problem
