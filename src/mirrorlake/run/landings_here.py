"""Which source clusters this process lands, or stands by for."""

from collections.abc import Callable, Collection, Mapping, Sequence

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.errors import MirrorlakeError
from mirrorlake.lake.deployment import Deployment
from mirrorlake.lake.stage_index import StageFiles
from mirrorlake.landing.worker import LandingWorker
from mirrorlake.naming.worker_groups import work_of_landing
from mirrorlake.run.leases import Leases
from mirrorlake.worker import Worker


class LandingsHere:
    """The landings of a replicator, for its thread. `once` lands up to an end; `note` takes the
    errors of landings that are no longer wanted."""

    def __init__(
        self,
        stage: StageFiles,
        leases: Leases,
        *,
        once: bool,
        note: Callable[[MirrorlakeError], None],
    ) -> None:
        self._stage, self._leases, self._once, self._note = stage, leases, once, note
        #: By source cluster.
        self.workers: dict[str, LandingWorker] = {}

    @property
    def all_ended(self) -> bool:
        """Whether all landings have ended."""
        return all(landing.thread.ended.is_set() for landing in self.workers.values())

    @property
    def threads(self) -> dict[str, Worker]:
        """The threads of the landings, by the names of their leases."""
        workers = list(self.workers.items())
        return {work_of_landing(source): landing.thread for source, landing in workers}

    @property
    def errors(self) -> list[MirrorlakeError]:
        """The errors of the current landings."""
        errors = [landing.error for landing in self.workers.values()]
        return [error for error in errors if error is not None]

    def want(
        self,
        readers: Mapping[str, Sequence[ResolvedFlow]],
        deployment: Deployment,
        shared: Collection[str] = (),
    ) -> None:
        """Land these sources for the flows that read from them, and no others; running landings go
        on. Other processes may run some flows of the `shared` sources."""
        for source in [source for source in self.workers if source not in readers]:
            self._end(source)
        for source, flows in readers.items():
            if source in self.workers:
                self.workers[source].set_flows(flows, deployment.connections, source in shared)
                continue
            lease = self._leases.of_landing(source, [flow.name for flow in flows])
            landing = LandingWorker(source, deployment, self._stage, self._once, lease)
            landing.set_flows(flows, deployment.connections, source in shared)
            landing.thread.start()
            self.workers[source] = landing  # only now: one that did not start has to be made again

    def stop(self) -> None:
        """Ask all landings to end."""
        for landing in self.workers.values():
            landing.thread.stop()

    def _end(self, source: str) -> None:
        landing = self.workers.pop(source)
        landing.thread.stop()
        landing.thread.join()
        if landing.error is not None:
            self._note(landing.error)
        self._leases.give_up(work_of_landing(source))
