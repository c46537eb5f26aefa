"""Control: what keeps the two sides of a flow alike beside records, each task at its own interval.

A thread per flow, so that a slow cluster never holds up records. A task that fails is tried again at its next turn, or
after RETRY_SECONDS if that is later; the failure is an incident until it comes through.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mirrorlake.core.survey import Key
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.causes import cause_of
from mirrorlake.engine.checkpoints import Checkpoints
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.control_acls import AclSync
from mirrorlake.engine.flow_worker import FlowWorker, Snapshot
from mirrorlake.engine.mirror_topics import CheckpointTopic, Heartbeats
from mirrorlake.engine.samples import FlowLag, Sampler, passed
from mirrorlake.errors import ReplicationError
from mirrorlake.lake.journal import Journal
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.translate import Passed

logger = logging.getLogger(__name__)

SAMPLE_SECONDS = 10.0
#: How long a task that failed waits at least, seconds: heartbeats would otherwise complain every second.
RETRY_SECONDS = 10.0
#: How long a sample waits for the flow's next look, seconds.
SNAPSHOT_SECONDS = 5.0


@dataclass
class Task:
    """Something to do every `seconds`; `due` is when next, by the monotonic clock. Not `once`: only while it runs."""

    name: str
    seconds: float
    work: Callable[[], object]
    due: float = 0.0
    once: bool = True


class ControlLoop:
    """The control tasks of one flow. `run_once` does each one time, `start` all of them until `stop`."""

    def __init__(
        self,
        flow: ResolvedFlow,
        lake: Lake,
        connections: Connections,
        journal: Journal,
        worker: FlowWorker,
        sampled: Callable[[str, FlowLag], None] | None = None,
    ) -> None:
        self.flow = flow
        self._connections = connections
        self._journal = journal
        self._worker = worker
        published = CheckpointTopic(flow, connections, journal)
        self._groups = Checkpoints(
            flow,
            lake,
            connections,
            worker.mirrors,
            worker.life,
            self._passed,
            published,
            journal,
            worker.target_generation,
            worker.check_targets,
        )
        self._sampler = Sampler(lake, connections, flow, worker.targets)
        self._sampled = sampled or (lambda flow, lag: None)
        self._failing: set[str] = set()
        self._stop = threading.Event()
        self._tasks = self._made()
        self._thread = threading.Thread(target=self._run, name=f"control {flow.name}", daemon=True)

    def _made(self) -> list[Task]:
        settings, flow = self.flow.settings, self.flow
        targets = self._worker.targets
        tasks = []
        # ACLs first: they are then there before the topics that they protect. Configs right behind the topics.
        if settings.sync_topic_acls_enabled:
            acls = AclSync(flow, self._connections, self._journal, targets.remote_topic)
            tasks.append(Task("acls", settings.sync_topic_acls_interval_seconds, acls.sync))
        refresh = settings.refresh_topics_interval_seconds
        if settings.refresh_topics_enabled:
            tasks.append(Task("topics", refresh, self._worker.refresh_topics))
        if not settings.refresh_topics_enabled or refresh > SAMPLE_SECONDS:
            tasks.append(Task("target topics", SAMPLE_SECONDS, self._worker.check_targets, once=False))
        if settings.sync_topic_configs_enabled:
            tasks.append(Task("configs", settings.sync_topic_configs_interval_seconds, targets.configs.sync))
        if settings.emit_checkpoints_enabled:
            tasks.append(Task("checkpoints", settings.emit_checkpoints_interval_seconds, self._groups.checkpoint))
            if settings.sync_group_offsets_enabled:
                tasks.append(Task("group offsets", settings.sync_group_offsets_interval_seconds, self._groups.sync))
        if settings.emit_heartbeats_enabled:
            heartbeats = Heartbeats(flow, self._connections, self._journal)
            tasks.append(Task("heartbeats", settings.emit_heartbeats_interval_seconds, heartbeats.beat, once=False))
        tasks.append(Task("refused records", SAMPLE_SECONDS, self._worker.look_at_refused))
        return tasks

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask for the end."""
        self._stop.set()

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def run_once(self) -> None:
        """Do every task one time. No heartbeats: nobody would mirror them any more."""
        for task in self._tasks:
            if task.once:
                self._do(task)

    def sample(self) -> None:
        """Write one sample of where every partition is."""
        lag = self._sampler.sample(self._snapshot)
        if lag is not None:
            self._sampled(self.flow.name, lag)

    def _snapshot(self) -> Snapshot | None:
        return self._worker.last_snapshot if self._worker.ended.is_set() else self._worker.snapshot(SNAPSHOT_SECONDS)

    def _passed(self, keys: Iterable[Key]) -> dict[Key, Passed] | None:
        """How far the flow is in partitions; None when it does not come to a look in time."""
        snapshot = self._snapshot()
        if snapshot is None:
            return None
        targets = self._worker.targets
        return {
            key: Passed(
                passed(snapshot, targets, key)[1],
                snapshot.mapped.get(key, 0),
                name,
                snapshot.target_generations.get(name, 0),
            )
            for key in keys
            if (name := targets.remote_topic(key[0])) is not None
        }

    def finish(self) -> None:
        """A last sample, of where the flow ended."""
        self._do(Task("samples", SAMPLE_SECONDS, self.sample))

    def _run(self) -> None:
        tasks = [*self._tasks, Task("samples", SAMPLE_SECONDS, self.sample, time.monotonic() + SAMPLE_SECONDS)]
        while not self._stop.is_set():
            for task in tasks:
                if not self._stop.is_set() and time.monotonic() >= task.due:
                    self._do(task)
                    pause = RETRY_SECONDS if task.name in self._failing else 0.0
                    task.due = time.monotonic() + max(pause, task.seconds)
            self._stop.wait(max(0.05, min(task.due for task in tasks) - time.monotonic()))

    def _do(self, task: Task) -> None:
        try:
            task.work()
        except Exception as error:  # noqa: BLE001 - the other tasks go on, and an operator is told
            logger.warning("flow %s: control of %s: %s", self.flow.name, task.name, cause_of(error))
            if task.name not in self._failing:
                self._failing.add(task.name)
                return  # once is no news: the next turn may go well
            problem = ReplicationError(f"control of {task.name} of flow {self.flow.name} fails: {cause_of(error)}")
            self._journal.incidents.tell(self.flow.name, f"control_{task.name.replace(' ', '_')}", problem)
        else:
            if task.name in self._failing:
                self._failing.discard(task.name)
                self._journal.incidents.came_through([self.flow.name], [f"control_{task.name.replace(' ', '_')}"])
