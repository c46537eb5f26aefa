"""The result of the last catch-up before groups are moved. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Drained:
    """The result of a catch-up. `missing` are partitions whose end was not reached; `records` were
    produced by it; `held` names open transactions at the source that hold records back."""

    flow: str
    complete: bool
    records: int = 0
    missing: tuple[str, ...] = ()
    detail: str | None = None
    held: tuple[str, ...] = ()
