"""How often a lake is written to, and asked, while there is nothing new. Pure.

On a disk that costs nothing that counts. In an object store each request has a price, a PUT or LIST
about twelve times that of a GET (docs/cost.md, "Requests of an object store"). So there, what says
nothing new is written every `lake.idle_seconds` only, and what this process has not changed itself
is asked for less often. Nothing else in the package has numbers for that reason.
"""

from collections.abc import Iterable
from dataclasses import dataclass

#: How much older than the pause between two heartbeats that are landed the newest one may be before
#: it is late: they come through within some seconds.
_HEARTBEATS_LATE = 1.5
#: A partition in which heartbeats wait must not look as if it stood still.
_STANDING = 3


@dataclass(frozen=True)
class IdlePace:
    """Pauses, in seconds.

    Attributes:
        samples: at least so long between samples that say nothing new; 0: each is written.
        heartbeats: so long heartbeats wait for other records before they are landed.
        looks: how often a flow looks for what was landed, by this process (which it also hears of)
            or by others; `looks_elsewhere` where another process lands.
        owners: how often a query is checked for another process that has taken over.
        leases: how often a lease is tried that another process has.
    """

    samples: float
    heartbeats: float
    looks: float
    looks_elsewhere: float
    owners: float
    leases: float

    @property
    def heartbeats_late(self) -> int:
        """How old the newest heartbeat may be that came through, where the file does not say."""
        return max(60, round(_HEARTBEATS_LATE * self.heartbeats))

    def heartbeats_within(self, objectives: Iterable[tuple[int, int]]) -> float:
        """So long heartbeats wait that flows mirror with such objectives: for the age of the newest
        heartbeat, and for how long a partition may stand still."""
        bounds = [
            min(late / _HEARTBEATS_LATE, standing / _STANDING) for late, standing in objectives
        ]
        return min([self.heartbeats, *bounds])


#: A look at a folder is a system call.
FOLDER = IdlePace(
    samples=0.0, heartbeats=10.0, looks=0.05, looks_elsewhere=0.05, owners=5.0, leases=2.0
)
#: How often, in a store, what says nothing new is written, where the file does not say: an idle
#: flow makes some 7,500 PUT and LIST requests a day by it.
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
