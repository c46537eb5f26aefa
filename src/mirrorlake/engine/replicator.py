"""The replicator: one landing query per source cluster, one producing thread per flow, samples of where all stand."""

import logging
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from mirrorlake.core.selection import TopicSelection, union_pattern
from mirrorlake.core.topology import ResolvedFlow
from mirrorlake.engine.connections import Connections
from mirrorlake.engine.samples import landed_ends, sample_positions
from mirrorlake.engine.targets import TargetTopics
from mirrorlake.errors import InputError, MirrorlakeError, ReplicationError, SourceDataLost, TargetRefused
from mirrorlake.lake.journal import Journal
from mirrorlake.lake.lake import Lake
from mirrorlake.lake.land import start_landing
from mirrorlake.lake.stage import Selected
from mirrorlake.produce.flow import BatchReport, FlowProducer, FlowSpec

logger = logging.getLogger(__name__)

#: How often a producing thread looks for new commits, and how long it waits after a failure, seconds.
LOOK_SECONDS = 0.05
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)
SAMPLE_SECONDS = 10.0

Report = Callable[[str, BatchReport], None]


@dataclass(frozen=True)
class RunOptions:
    """How `run` was asked to go. `reader` is auto, files or rows (see `produce/flow.py`)."""

    once: bool = False
    reader: str = "auto"


class Replicator:
    """Runs flows of one topology over one lake. `run` blocks until `stop` is set or, `once`, all is done."""

    def __init__(
        self,
        lake: Lake,
        connections: Connections,
        flows: Sequence[ResolvedFlow],
        options: RunOptions,
        report: Report | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self.lake = lake
        self.connections = connections
        self.flows = list(flows)
        self.options = options
        self.journal = Journal(lake)
        self._report = report or (lambda flow, batch: None)
        self._stop = stop or threading.Event()
        self._errors: list[MirrorlakeError] = []
        self._queries: dict[str, StreamingQuery] = {}
        self._landed = threading.Event()
        self._targets: dict[str, TargetTopics] = {}

    def stop(self) -> None:
        """Ask for the end: batches in hand are finished."""
        self._stop.set()

    def run(self) -> None:
        """Replicate. Raises the first error that an operator has to know about, after the other flows have ended."""
        self.connections.check(self.flows)
        self.journal.clusters(
            self.connections.identify(sorted({f.source for f in self.flows} | {f.target for f in self.flows}))
        )
        for flow in self.flows:
            self._targets[flow.name] = TargetTopics(flow, self.connections, self.journal)
            self._targets[flow.name].refresh()
        for source in sorted({flow.source for flow in self.flows}):
            self._queries[source] = self._start_landing(source)
        threads = [
            threading.Thread(target=self._flow_loop, args=(flow,), name=f"produce {flow.name}", daemon=True)
            for flow in self.flows
        ]
        for thread in threads:
            thread.start()
        self._wait_for_landing()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _start_landing(self, source: str) -> StreamingQuery:
        selections = self._selections(source)
        admin = self.connections.admin(source)
        names = frozenset(name for name in admin.topics() if any(selection.selects(name) for selection in selections))
        return start_landing(
            self.lake,
            admin,
            self.connections.spark(source),
            union_pattern(selections),
            self.connections.topology.clusters[source].landing,
            self.options.once,
            names,
        )

    def _selections(self, source: str) -> list[TopicSelection]:
        return [self._targets[flow.name].selection for flow in self.flows if flow.source == source]

    def _wait_for_landing(self) -> None:
        """Watch the landing queries until they end by themselves (`once`), fail, or are to be stopped."""
        while not self._stop.is_set():
            failed = [(source, query) for source, query in self._queries.items() if _failure(query)]
            for source, query in failed:
                self._landing_failed(source, query)
            if all(not query.isActive for query in self._queries.values()):
                break
            self._stop.wait(0.2)
        for query in self._queries.values():
            stop_between_batches(query)
        self._landed.set()

    def _landing_failed(self, source: str, query: StreamingQuery) -> None:
        error = _failure(query)
        del self._queries[source]
        lost = (
            "KafkaIllegalStateException" in str(error)
            or "DATA_LOSS" in str(error)
            or "may have been lost" in str(error)
        )
        kind = SourceDataLost if lost else ReplicationError
        problem = kind(
            f"landing from cluster {source} stopped: {_cause(error)}; the flows from it have produced what was landed",
            source=source,
        )
        for flow in self.flows:
            if flow.source == source:
                self.journal.incident(flow.name, "source_data_lost" if lost else "landing_failed", problem)
        self._errors.append(problem)

    def _flow_loop(self, flow: ResolvedFlow) -> None:
        """Produce one flow until the end; what can pass by itself is tried again, from the tables."""
        attempt = 0
        while True:
            try:
                self._produce(flow)
                return
            except (TargetRefused, InputError) as error:
                self._flow_failed(flow, error)
                return
            except (MirrorlakeError, KafkaException, PySparkException) as error:
                known = _known_error(error)
                if (
                    known is not None
                    or attempt >= len(RETRY_SECONDS)
                    or (self._landed.is_set() and self._stop.is_set())
                ):
                    self._flow_failed(flow, known or ReplicationError(f"flow {flow.name} stopped: {_cause(error)}"))
                    return
                logger.warning("flow %s: %s; trying again", flow.name, _cause(error))
                self._stop.wait(RETRY_SECONDS[attempt])
                attempt += 1

    def _flow_failed(self, flow: ResolvedFlow, error: MirrorlakeError) -> None:
        logger.error("%s", error)
        self._errors.append(error)
        self.journal.incident(flow.name, _incident_kind(error), error)

    def _produce(self, flow: ResolvedFlow) -> None:
        producer = FlowProducer(self.lake, self._spec(flow), self._targets[flow.name].ensure)
        resolved = False
        try:
            sampled = refreshed = time.monotonic()
            while True:
                ended = self._landed.is_set()
                due = time.monotonic() - sampled >= SAMPLE_SECONDS
                # Asked for before the look: what landing covered by then is produced once the look finds nothing.
                staged = self._staged(flow.source) if due or ended else {}
                report = producer.step()
                if report is not None:
                    self._report(flow.name, report)
                    if not resolved:
                        self.journal.restarted(flow.name)
                        resolved = True
                last = ended and (report is None or self._stop.is_set())
                if due or last:
                    self._sample(flow, producer, staged, caught_up=report is None)
                    sampled = time.monotonic()
                if last:
                    break
                if report is None:
                    self._landed.wait(LOOK_SECONDS)
                if time.monotonic() - refreshed >= flow.settings.refresh_topics_interval_seconds:
                    self._targets[flow.name].refresh()
                    refreshed = time.monotonic()
            producer.drain()
        finally:
            producer.close()

    def _spec(self, flow: ResolvedFlow) -> FlowSpec:
        targets = self._targets[flow.name]
        client = self.connections.client(flow.target, "admin")
        producer = self.connections.client(flow.target, "producer")
        return FlowSpec(
            flow.name,
            Selected(flow.source, targets.selection.java_pattern()),
            targets.remote_topic,
            client,
            producer,
            flow.settings.produce_tasks,
            flow.settings.delivery == "exactly_once",
            reader=self.options.reader,
        )

    def _sample(
        self, flow: ResolvedFlow, producer: FlowProducer, staged: dict[tuple[str, int], int], caught_up: bool
    ) -> None:
        """Write one sample of every partition of a flow; `staged` was asked for before the flow's last look."""
        sample_positions(self.lake, self.connections, flow, self._targets[flow.name], producer, staged, caught_up)

    def _staged(self, source: str) -> dict[tuple[str, int], int]:
        query = self._queries.get(source)
        return landed_ends(query) if query is not None else {}


def stop_between_batches(query: StreamingQuery) -> None:
    """Stop a query when no batch is in flight: an interrupted one logs a long error and has to be done again."""
    deadline = time.monotonic() + 60
    pause = threading.Event()
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        pause.wait(0.005)
    query.stop()


def _failure(query: StreamingQuery) -> StreamingQueryException | None:
    return None if query.isActive else query.exception()


def _known_error(error: BaseException) -> MirrorlakeError | None:
    """The error of ours that a Spark task failed with, if it is one that trying again cannot mend."""
    if isinstance(error, MirrorlakeError):
        return error
    text = str(error)
    for kind in (TargetRefused,):
        marker = f"{kind.__module__}.{kind.__name__}: "
        if marker in text:
            return kind(text.split(marker, 1)[1].splitlines()[0])
    return None


def _incident_kind(error: MirrorlakeError) -> str:
    kinds = {"TargetRefused": "target_refused", "MapError": "map_contradiction", "SourceDataLost": "source_data_lost"}
    return kinds.get(type(error).__name__, "flow_stopped")


def _cause(error: BaseException | None) -> str:
    """The line of a Python or JVM error text that says most: what a worker raised, or the innermost cause."""
    text = str(error or "unknown error").strip()
    raised = [line for line in text.splitlines() if re.match(r"[\w.]*(Error|Exception|Refused): ", line)]
    causes = [line.split("Caused by: ", 1)[1] for line in text.splitlines() if "Caused by: " in line]
    return ((raised[:1] or causes[-1:] or text.splitlines()[:1])[0])[:500]
