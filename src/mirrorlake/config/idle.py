"""How often an idle lake is written to and read. Pure.

On a disk that costs next to nothing. In a catalog's own tables each commit takes Spark most of a
second of a core, and a batch of heartbeats alone makes four. In an object store each request has a
price, a PUT or LIST about twelve times that of a GET (docs/cost.md, "Requests of an object store").
So there, rows without news are written only every `lake.idle_seconds`, and changes by other
processes are looked for less often. All intervals with this reason are in this module.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

#: A heartbeat is late at this multiple of the interval of landed ones: they take seconds.
_HEARTBEATS_LATE = 1.5
#: Heartbeats wait at most this fraction (1/3) of the time after which a partition counts as stuck.
_STANDING = 3


@dataclass(frozen=True)
class IdlePace:
    """Intervals, in seconds.

    Attributes:
        samples: the shortest interval between samples without news; 0: each is written.
        heartbeats: how long heartbeats wait for other records before they are landed.
        looks: how often a flow looks for landed records; this process also notifies it.
            `looks_elsewhere` if another process lands.
        owners: how often a query checks whether another process has taken over.
        leases: how often a process retries a lease that another one holds.
    """

    samples: float
    heartbeats: float
    looks: float
    looks_elsewhere: float
    owners: float
    leases: float

    @property
    def heartbeats_late(self) -> int:
        """The default for how old the newest heartbeat at the target may be, seconds."""
        return max(60, round(_HEARTBEATS_LATE * self.heartbeats))

    def heartbeats_within(self, objectives: Iterable[tuple[int, int]]) -> float:
        """How long heartbeats may wait, given the flows' objectives: the age of the newest
        heartbeat, and how long a partition may stand still."""
        bounds = [
            min(late / _HEARTBEATS_LATE, standing / _STANDING) for late, standing in objectives
        ]
        return min([self.heartbeats, *bounds])


#: In a folder a look costs one system call.
FOLDER = IdlePace(
    samples=0.0, heartbeats=10.0, looks=0.05, looks_elsewhere=0.05, owners=5.0, leases=2.0
)
#: In a catalog's own tables: half of the commits that the pace of a folder makes.
CATALOG = replace(FOLDER, samples=20.0, heartbeats=20.0)
#: The default of `lake.idle_seconds`, how often a store gets rows without news: an idle flow makes
#: some 7,500 PUT and LIST requests a day with it.
STORE_SECONDS = 120


def pace_in_store(idle_seconds: int | None) -> IdlePace:
    """The pace in an object store; None is the default of `lake.idle_seconds`."""
    seconds = float(idle_seconds or STORE_SECONDS)
    return IdlePace(
        samples=seconds,
        heartbeats=seconds,
        looks=min(10.0, seconds),
        looks_elsewhere=1.0,
        owners=min(60.0, seconds),
        leases=min(20.0, seconds),
    )
