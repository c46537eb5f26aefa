"""Sends a resend's records like a flow produces: exactly once, in order, mapped, whenever the
process is killed.

`produce/flow.py` does all of that. A resend differs in that the stage has bounds, so there is an
end; a selection may pick records; and no row goes to `latency`, which is of a source's records.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from mirrorlake.config.flow import Flow
from mirrorlake.errors import (
    ClusterUnusable,
    CountDiffers,
    MapError,
    MirrorlakeError,
    PlanOutdated,
    PositionLost,
    TargetRefused,
)
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.forgotten import forgotten_from
from mirrorlake.lake.map_store import LakeMap
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.naming.at_target import name_at_target
from mirrorlake.offsets.generations import TargetGeneration
from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.batch_report import BatchReport
from mirrorlake.produce.flow import FlowProducer
from mirrorlake.produce.ports import Stage
from mirrorlake.produce.provenance import Provenance
from mirrorlake.produce.spec import FlowSpec
from mirrorlake.produce.stage_rows import Selection
from mirrorlake.produce.workers import SparkWorkers
from mirrorlake.resend.extras import ExtrasDone
from mirrorlake.resend.note import Resend
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import PAUSES, Failure, Retry, Worker

logger = logging.getLogger(__name__)

#: How often the caller checks whether it has to stop, seconds.
LOOK_SECONDS = 0.2
#: About how many records one batch has at most.
BATCH_RECORDS = 2_000_000


class BoundedStage:
    """A stage limited to some ranges of offsets, whatever is landed meanwhile."""

    def __init__(self, stage: Stage, bounds: Sequence[StagedRange]) -> None:
        self._stage = stage
        self._bounds = bounds
        self._seen: StageIndex | None = None

    @property
    def storage(self) -> Mapping[str, str] | None:
        """See `produce.ports.Stage`: temporary credentials may have changed by now."""
        return self._stage.storage

    @property
    def is_its_files(self) -> bool:
        """See `produce.ports.Stage`."""
        return self._stage.is_its_files

    @contextmanager
    def reading(self) -> Iterator[StageIndex]:
        """See `produce.ports.Stage`."""
        with self._stage.reading() as index:
            if self._seen is None or self._seen.version != index.version:
                self._seen = index.bounded(self._bounds)
            yield self._seen

    def forget(self) -> None:
        """See `produce.ports.Stage`."""
        self._seen = None
        self._stage.forget()

    def invalidate(self) -> None:
        """See `produce.ports.Stage`."""
        self._seen = None
        self._stage.invalidate()


class ResendMap(LakeMap):
    """A flow's part of the map, without rows in `latency`.

    Records of a parked replay that the target refuses are noted in `parked` under the replay's own
    name, before anything behind is sent: after a kill, the next process leaves out the same.
    """

    def append_latency(self, rows: pa.Table, batch_id: int) -> None:
        """Do nothing: the age of a record that is sent again says nothing about latency."""


@dataclass
class SendOutcome:
    """The outcome: `records` at each target topic, of this call and earlier ones; whether all were
    sent; what the target refused; what was done beside them. `unexplained` are target topics with
    an unexpected number of records and no known reason."""

    records: dict[str, int] = field(default_factory=dict)
    complete: bool = False
    refused: list[TargetRefused] = field(default_factory=list)
    extras: ExtrasDone = field(default_factory=ExtrasDone)
    unexplained: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sending:
    """How to send. `selection` picks records of the ranges, and `mark` is a header added to each;
    `rate` is the most records per second, on average; `report` gets each batch. With `goes_on`
    single records that the target refuses are left out. `provenance` is what a flow writes into
    headers. With `restores_only` nothing is sent: records that the target has already, but the map
    lacks, get their rows."""

    selection: Selection | None = None
    mark: tuple[str, bytes] | None = None
    rate: int | None = None
    report: Callable[[BatchReport], None] = lambda _batch: None
    goes_on: bool = False
    provenance: Provenance | None = None
    restores_only: bool = False


class Sender:
    """Sends one resend, to its end or until stopped. The caller holds its lease."""

    def __init__(
        self, deployment: Deployment, stage: StageFiles, resend: Resend, sending: Sending
    ) -> None:
        self._lake, self._connections = deployment.lake, deployment.connections
        self._resend, self._sending = resend, sending
        self._stage = BoundedStage(stage, resend.ranges)
        self._outcome = SendOutcome()
        retry = Retry(self._ends, self._report_failure)
        self._worker = Worker(resend.name, self._turn, retry, in_words=as_mirrorlake_error)

    def send(self, stop: threading.Event) -> SendOutcome:
        """Send, except what earlier calls have sent. Raises the MirrorlakeError that ended it."""
        self._worker.start()
        while not self._worker.join(LOOK_SECONDS):
            if stop.is_set():
                self._worker.stop()
        if self._worker.error is not None:
            raise self._worker.error
        rows = self._lake.ask("resent", flow=self._resend.name)
        self._outcome.records = {row["target_topic"]: row["record_count"] for row in rows}
        return self._outcome

    def _ends(self, error: BaseException, problem: MirrorlakeError, attempt: int) -> bool:
        """Whether a failure is final: a lost broker, disk or task may come back."""
        final = isinstance(problem, MapError) or isinstance(error, MirrorlakeError)
        comes_back = isinstance(error, (ClusterUnusable, PlanOutdated)) or isinstance(
            problem, CountDiffers
        )
        return not (comes_back or not final) or attempt >= len(PAUSES)

    def _report_failure(self, failure: Failure) -> None:
        if not failure.ends:
            logger.warning("%s: %s; trying again", self._resend.name, failure.problem)

    def _turn(self) -> float | None:
        """Send all of it with one producer."""
        self._outcome.refused.clear()
        workers = SparkWorkers(
            self._lake, self._resend.source, self._small_batch(), self._sending.selection
        )
        store = ResendMap(self._lake, self._resend.name)
        producer = FlowProducer(
            self._stage,
            store,
            workers,
            self._spec(),
            lambda _plans: None,
            on_part=self._sending.report,
        )
        try:
            left = self._steps(producer)
            producer.drain()
        finally:
            producer.close()
        self._outcome.complete = not left and not self._outcome.refused
        return None

    def _steps(self, producer: FlowProducer) -> bool:
        """Send batch after batch; return whether something is left."""
        began, sent, rate = time.monotonic(), 0, self._sending.rate
        while not self._worker.stopping.is_set():
            report = producer.step()
            if producer.has_mapped:
                self._worker.succeeded()
            if report is None:
                return False
            sent += report.record_count
            self._sending.report(report)
            if rate is not None:
                self._worker.stopping.wait(max(0.0, sent / rate - (time.monotonic() - began)))
        return True

    def _spec(self) -> FlowSpec:
        resend, connections, rate = self._resend, self._connections, self._sending.rate
        stopped = [staged.place for staged in resend.ranges if self._sending.restores_only]
        return FlowSpec(
            resend.name,
            source_cluster=resend.source,
            name_at_target=name_at_target(self._lake.lake_id, resend.name),
            remote_topic=resend.names.get,
            client=connections.client(resend.target, "admin"),
            producer=connections.client(resend.target, "producer"),
            produce_tasks=self._defaults.produce_tasks,
            transactional=True,
            max_records=BATCH_RECORDS if rate is None else batch_size(rate, resend),
            reader="auto" if self._sending.selection is None else "rows",
            targets={
                part.target_topic: TargetGeneration(began=part.began) for part in resend.parts
            },
            stopped=frozenset(stopped),
            on_refused=self._refused,
            forgotten=forgotten_from(self._lake, resend.source),
            parks=self._sending.goes_on,
            provenance=self._sending.provenance,
            mark=self._sending.mark,
            counted=self._sending.selection is None,
        )

    @property
    def _defaults(self) -> Flow:
        return self._connections.topology.defaults

    def _small_batch(self) -> int:
        cluster = self._connections.topology.clusters.get(self._resend.source)
        return 0 if cluster is None else cluster.landing.small_batch_records

    def _refused(self, errors: Sequence[TargetRefused]) -> None:
        self._outcome.refused += [
            PositionLost(
                f"{error.topic}-{error.partition}: the target does not know any more how far "
                f"{self._resend.name} is, and holds records that may be of it; {self._way_out}",
                topic=error.topic,
                partition=error.partition,
            )
            if isinstance(error, PositionLost)
            else error
            for error in errors
        ]

    @property
    def _way_out(self) -> str:
        """What helps where the target has lost the position, and headers do not say which records
        it has. A replay of parked records has no other topic to go to."""
        if not any(part.picked for part in self._resend.parts):
            return "start over, into another topic"
        return (
            f"they have a header with {self._resend.id}, and none that says which they are: while "
            "they are there none of it is sent, since some would come twice"
        )


def batch_size(rate: int, resend: Resend) -> int:
    """About how many staged records have a second's worth of selected ones, if spread evenly."""
    staged = sum(staged_range.last - staged_range.first + 1 for staged_range in resend.ranges)
    return min(BATCH_RECORDS, max(rate, rate * staged // max(1, resend.records)))
