"""Clusters that, as a whole or by single leaders, did not answer when flows were judged
(`checks/preflight.py`): no rule has checked flows there, or first offsets are unknown."""

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import count

from mirrorlake.checks.other_lakes import is_unknown
from mirrorlake.checks.preflight import Preflight, judged
from mirrorlake.checks.problem import Problem, refused_flows
from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import ClusterUnreachable, ClusterUnusable, ReplicationError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.event_log import EventLog
from mirrorlake.run.flow_worker import TRANSIENT_KINDS
from mirrorlake.spark.causes import as_mirrorlake_error
from mirrorlake.worker import Worker

logger = logging.getLogger(__name__)

#: The pause between two attempts to ask them, seconds.
ASK_SECONDS = 10.0


class SilentClusters:
    """The silent clusters of one run, and the thread that asks them if the run `waits`. For the
    thread of a replicator.

    Attributes:
        aliases: the clusters.
    """

    def __init__(self, waits: bool) -> None:
        self.aliases: frozenset[str] = frozenset()
        self._waits = waits
        self._asking: Worker | None = None

    @property
    def answered(self) -> bool:
        """Whether one of the clusters has answered since `ask_for`."""
        return self._asking is not None and self._asking.ended.is_set()

    def ask_for(self, connections: Connections, aliases: Collection[str]) -> None:
        """Replace the clusters, and ask these from now on."""
        if self._asking is not None:
            self._asking.stop()
        self.aliases, self._asking = frozenset(aliases), None
        if self.aliases and self._waits:
            self._asking = asking(connections, self.aliases)
            self._asking.start()


def asking(connections: Connections, aliases: Collection[str]) -> Worker:
    """A thread, to be started, that ends once one of the clusters answers: a caller that asked them
    itself would do nothing else for seconds."""

    turns = count()

    def turn() -> float | None:
        for alias in aliases if next(turns) else ():  # the first turn only waits
            with suppress(ClusterUnusable):
                connections.admin(alias).cluster_id()
                return None
        return ASK_SECONDS

    return Worker("asking clusters that are away", turn, in_words=as_mirrorlake_error)


def judged_late(
    deployment: Deployment, flows: Sequence[ResolvedFlow], silent: Collection[str]
) -> tuple[Preflight, Mapping[str, ReplicationError]]:
    """Judge flows once more, of which some clusters were `silent`. Returns the verdict on those
    that may run, and why others must not; of two, the one judged before goes on. Raises
    ClusterUnusable, also if a cluster does not tell what a rule needs."""
    lake, connections = deployment.lake, deployment.connections
    preflight = judged(lake, connections, flows)
    late = {
        name: problem
        for name, problem in _refused(preflight).items()
        if not set(silent).isdisjoint(name.split("->"))
    }
    if late:
        preflight = judged(lake, connections, [flow for flow in flows if flow.name not in late])
    refused = {**_refused(preflight), **late}
    return preflight, {name: ReplicationError(str(why)) for name, why in refused.items()}


def note_refused(event_log: EventLog, refused: Mapping[str, ReplicationError]) -> None:
    """Open an incident for each flow that ended because it must not run; close its passing ones."""
    for name, why in refused.items():
        event_log.incidents.close_kinds([name], TRANSIENT_KINDS)
        event_log.incidents.open(name, why.incident_kind, why)
        logger.error("%s; flow %s has ended", why, name)


def _refused(preflight: Preflight) -> dict[str, Problem]:
    """Flows that must not run, and why. Raises ClusterUnreachable if only silence is the reason."""
    refused = refused_flows(preflight.problems)
    for problem in refused.values():
        if is_unknown(problem):
            raise ClusterUnreachable(str(problem), alias=problem.subject)
    return refused
