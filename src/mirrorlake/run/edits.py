"""Edits of a running replicator's topology file: put in force, or reported with the reason."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mirrorlake.checks.preflight import Preflight, judge
from mirrorlake.config.topology import ResolvedFlow, Topology, load_topology
from mirrorlake.errors import ReplicationError, TopologyError
from mirrorlake.kafka.connections import Connections
from mirrorlake.lake.changes import Change, ChangeOutcome
from mirrorlake.lake.event_log import EventLog
from mirrorlake.lake.incidents import Incident
from mirrorlake.lake.lake import Lake
from mirrorlake.spark.causes import as_mirrorlake_error

logger = logging.getLogger(__name__)

#: The kind of incident for an edit that is not in force.
EDIT = "topology_edit"
#: How long an edit that cannot be in force yet waits until it is tried again, seconds.
RETRY_SECONDS = 10.0


class TopologyWatch:
    """Notices edits of a topology file by its content, and keeps one that has to wait.

    `in_force` is the topology that the run began with: a change since then is an edit. `again` says
    whether `edited` had returned its last result before. `clock` gives seconds.
    """

    def __init__(
        self, path: Path, in_force: Topology, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self.again = False
        self._clock = clock
        self._in_force: Topology | None = in_force
        self._known: bytes | None = None
        self._waiting: Topology | None = None
        self._tried = 0.0

    def edited(self) -> Topology | None:
        """The topology, if the file was edited since the last call, or if an edit has waited for
        RETRY_SECONDS. Raises TopologyError, once, if the edit is invalid."""
        content = self._content()
        if content == self._known and self._in_force is None:
            self.again = True
            return self._waiting if self._clock() - self._tried >= RETRY_SECONDS else None
        try:
            topology: Topology | None = load_topology(self.path)
        except TopologyError:
            self._looked_at(content)
            raise
        topology = None if topology == self._in_force else topology
        # only once the content is loaded: else an edit that could not be read would be lost
        self._looked_at(content)
        return topology

    def _looked_at(self, content: bytes | None) -> None:
        self._known, self._waiting, self._in_force, self.again = content, None, None, False

    def wait(self, topology: Topology) -> None:
        """Keep an edit that cannot be in force now, until it can be or the file is edited again."""
        self._waiting, self._tried = topology, self._clock()

    def done(self) -> None:
        """Note that the last edit is in force."""
        self._waiting = None

    def _content(self) -> bytes | None:
        try:
            return self.path.read_bytes()
        except OSError:
            # an editor may be replacing it; `load_topology` says what is wrong if it stays away
            return None


class Edits:
    """Follows the file that `watch` watches. `chosen` are the flows that `--flow` named, None for
    all; `apply` makes the flows run that a preflight wants."""

    def __init__(
        self,
        watch: TopologyWatch,
        lake: Lake,
        event_log: EventLog,
        chosen: tuple[str, ...] | None,
        apply: Callable[[Preflight], None],
    ) -> None:
        self._watch = watch
        self._lake = lake
        self._event_log = event_log
        self._chosen = chosen
        self._apply = apply
        self._unreported: tuple[Sequence[ResolvedFlow], ReplicationError] | None = None

    def take_over(self, connections: Connections, flows: Sequence[ResolvedFlow]) -> None:
        """Put an edit in force, if there is one, while `flows` run. An invalid one is reported, one
        that cannot be in force yet (a cluster does not answer, a secret is missing) waits;
        meanwhile the old one stays in force.

        Raises the errors of reading the file, or of reporting: the next call does that again.
        """
        if self._unreported is not None:
            self._tell(*self._unreported)
        waiting: Topology | None = None
        try:
            topology = self._watch.edited()
            if topology is None:
                return
            wanted = wanted_flows(topology, connections.topology, self._chosen)
            waiting = topology
            preflight = judge(self._lake, connections.renewed(topology), wanted)
            self._apply(preflight)
            in_force(
                self._event_log,
                preflight.connections,
                preflight.flows,
                [flow.name for flow in flows],
            )
            self._note(preflight.flows, "done", None)
        except Exception as error:
            if waiting is not None:
                self._watch.wait(waiting)
            elif not isinstance(error, TopologyError):
                raise  # the file could not be read: that is no error of an edit
            self._not_in_force(
                flows, error, "" if waiting is None else "; it is tried again until it succeeds"
            )
            return
        logger.warning("the edited %s is in force", self._watch.path)
        self._watch.done()

    def _not_in_force(
        self, flows: Sequence[ResolvedFlow], error: BaseException, later: str
    ) -> None:
        """Report that the file is not in force: once in the log, and as an incident meanwhile."""
        path = self._watch.path
        problem = as_mirrorlake_error(error, f"the edit of {path}")
        is_news = not self._watch.again
        if is_news:
            logger.error("%s; what ran before goes on unchanged%s", problem, later)
        # First: it is reported again later if the lake takes no rows just now.
        self._tell(flows, ReplicationError(f"the edited {path} is not in force: {problem}{later}"))
        if is_news and isinstance(problem, TopologyError):
            self._note(flows, "refused", str(problem))

    def _tell(self, flows: Sequence[ResolvedFlow], problem: ReplicationError) -> None:
        self._unreported = flows, problem
        self._event_log.incidents.report(Incident(flow.name, EDIT, problem) for flow in flows)
        self._unreported = None

    def _note(
        self, flows: Sequence[ResolvedFlow], outcome: ChangeOutcome, error: str | None
    ) -> None:
        change = Change("topology", str(self._watch.path), outcome=outcome, error=error)
        for flow in flows:
            self._event_log.record(flow.name, [change])


def wanted_flows(
    topology: Topology, before: Topology, chosen: tuple[str, ...] | None
) -> list[ResolvedFlow]:
    """The flows that an edit wants. Raises TopologyError for a change that needs a new start."""
    for block in ("lake", "availability", "metrics", "tracking"):
        if getattr(topology, block) != getattr(before, block):
            raise TopologyError(f"{block} cannot be changed while running: stop and start again")
    flows = [flow for flow in topology.active_flows() if chosen is None or flow.name in chosen]
    known = {flow.naming.file for flow in before.active_flows()}
    for flow in flows:
        if flow.naming.file not in {None, *known}:
            raise TopologyError(
                f"policy {flow.settings.policy} of flow {flow.name} is code that this run did not "
                "begin with, and an edit lets in none: stop and start again"
            )
    return flows


def in_force(
    event_log: EventLog,
    connections: Connections,
    flows: Iterable[ResolvedFlow],
    before: Iterable[str] = (),
) -> None:
    """The topology file is in force: close the incidents that report that it is not, for these
    flows, for those that ran `before`, and for those that the file no longer has."""
    here = {*before, *(flow.name for flow in flows)}
    known = connections.topology.flows
    event_log.incidents.close(
        lambda key: key.kind == EDIT and (key.flow in here or key.flow not in known)
    )
