"""The current state of a process and its run, from its memory and /proc; served to Prometheus or
sent by OTLP, as the `metrics` block says."""

import logging
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from os import getpid
from time import time

import confluent_kafka

from mirrorlake import __version__
from mirrorlake.config.metrics import Metrics
from mirrorlake.config.topology import Topology
from mirrorlake.lake.objectives import brings_heartbeats
from mirrorlake.metrics.facts import Facts, FlowFacts, FlowInForce, WorkerFacts
from mirrorlake.metrics.recorder import Recorder
from mirrorlake.run.flows_here import Running
from mirrorlake.run.replicator import Replicator
from mirrorlake.worker import Worker

logger = logging.getLogger(__name__)

#: Objectives by their name in metrics: the key in the topology file, and its units per second.
_OBJECTIVES = {
    "lag": ("lag_seconds", 1),
    "latency_p99": ("latency_p99_ms", 1_000),
    "heartbeat": ("heartbeat_seconds", 1),
    "stuck": ("stuck_seconds", 1),
    "transaction": ("transaction_seconds", 1),
}


class Standing:
    """The facts of a process. Threads report to `recorder`; `replicator` is None until there is
    one; `phase` returns the phase of the start and its seconds so far."""

    def __init__(self, phase: Callable[[], tuple[str, float] | None]) -> None:
        self.recorder = Recorder()
        self.replicator: Replicator | None = None
        self._phase = phase

    def facts(self) -> Facts:
        """The current facts."""
        replicator = self.replicator
        facts = replace(self.recorder.facts(), memory=_memory(), build=dict(_build()), now=time())
        if replicator is None or not replicator.begun:
            phase = self._phase()
            return replace(facts, phase="the first steps" if phase is None else phase[0])
        topology, here = replicator.topology, replicator.running
        running = {each.worker.flow.name for each in here}
        return replace(
            facts,
            in_force=tuple(_in_force(each, facts.flows, topology) for each in here),
            stands_by=tuple(name for name in replicator.wanted if name not in running),
            unsettled=replicator.take_over.unsettled,
            # the run's own thread works even without a flow, when there is no other worker
            workers=(WorkerFacts("run", "working", 0), *map(_worker, replicator.workers)),
            incidents=replicator.event_log.incidents.open_kind_counts(),
        )


def _in_force(running: Running, known: Mapping[str, FlowFacts], topology: Topology) -> FlowInForce:
    flow, groups = running.worker.flow, running.control.groups
    topics = {topic for topic, _ in known.get(flow.name, FlowFacts()).samples}
    thresholds = topology.objectives_of(flow.name)
    return FlowInForce(
        flow.name,
        frozenset(topic for topic in topics if flow.pauses(topic)),
        {
            name: thresholds[key] / per
            for name, (key, per) in _OBJECTIVES.items()
            if name != "heartbeat" or brings_heartbeats(flow)
        },
        {"source": groups.source.positions(), "target": groups.target.positions()},
        topology.quiet_seconds(flow.name),
    )


def _worker(worker: Worker) -> WorkerFacts:
    return WorkerFacts(worker.name, worker.state, worker.failures)


@cache
def _build() -> tuple[tuple[str, str], ...]:
    """The labels of `mirrorlake_build_info`, in order."""
    return (
        ("version", __version__),
        ("python", platform.python_version()),
        ("librdkafka", confluent_kafka.libversion()[0]),
    )


def _memory() -> dict[str, int]:
    """Resident bytes of this process and of those that it started; empty without psutil."""
    with suppress(ModuleNotFoundError):
        from mirrorlake.processes import resident_bytes  # psutil is an extra

        return resident_bytes(getpid())
    return {}


@contextmanager
def published(
    metrics: Metrics, phase: Callable[[], tuple[str, float] | None]
) -> Iterator[Standing]:
    """Serve and send the metrics of this process while the block runs; see `server.serving` and
    `sender.sending`. `phase` is as for `Standing`."""
    standing = Standing(phase)
    with ExitStack() as ways:
        if metrics.address is not None:
            from mirrorlake.metrics.server import serving  # an extra

            port = ways.enter_context(serving(metrics.address, standing.facts, metrics.max_series))
            logger.info("metrics are served at port %d", port, extra={"facts": {"port": port}})
        if metrics.otlp is not None:
            from mirrorlake.metrics.sender import sending  # another extra

            ways.enter_context(sending(metrics.otlp, standing.facts, metrics.max_series))
        yield standing
