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
    """For the thread of a replicator. `once` lands up to an end; `note` takes what landings ended
    with that are not wanted any more."""

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
        """Whether all have come to their end."""
        return all(landing.thread.ended.is_set() for landing in self.workers.values())

    @property
    def threads(self) -> dict[str, Worker]:
        """Their threads, by what they have the lease of."""
        workers = list(self.workers.items())
        return {work_of_landing(source): landing.thread for source, landing in workers}

    @property
    def errors(self) -> list[MirrorlakeError]:
        """What operators have to know of those that there are."""
        errors = [landing.error for landing in self.workers.values()]
        return [error for error in errors if error is not None]

    def want(
        self,
        readers: Mapping[str, Sequence[ResolvedFlow]],
        deployment: Deployment,
        shared: Collection[str] = (),
    ) -> None:
        """Land these sources for the flows that read from them, and no others: those that are
        landed already go on. Of `shared` ones other processes may run some flows."""
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
            self.workers[source] = landing  # not before: one that did not start is to be made again

    def stop(self) -> None:
        """Ask for the end of all."""
        for landing in self.workers.values():
            landing.thread.stop()

    def _end(self, source: str) -> None:
        landing = self.workers.pop(source)
        landing.thread.stop()
        landing.thread.join()
        if landing.error is not None:
            self._note(landing.error)
        self._leases.give_up(work_of_landing(source))
