"""How the last catch-up before groups are moved ended. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Drained:
    """How a catch-up ended. `missing` are partitions whose end was not reached; `records` were
    produced by it; `held` says which transactions are open at the source, and keep records back."""

    flow: str
    complete: bool
    records: int = 0
    missing: tuple[str, ...] = ()
    detail: str | None = None
    held: tuple[str, ...] = ()
