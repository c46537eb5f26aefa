"""Cores and memory that flows need (docs/capacity.md). Pure arithmetic over `capacity_figures`.

Figures are busy cores of the process, without brokers, on cores like those measured. Provide more:
so that `UTILISATION` of the cores is busy, and `HEADROOM` times the memory.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mirrorlake.library.capacity_figures import FIGURES, LakeKind

#: The share of the cores that should be busy; the rest is for peaks and catching up.
UTILISATION = 0.7
#: Memory to provide, as a multiple of the measured memory.
HEADROOM = 1.25
#: Batches a second of a flow that always has records, at the default `trigger_ms`.
BATCHES_PER_SECOND: Mapping[LakeKind, float] = {"folder": 2.5, "store": 2.5, "catalog": 0.67}
#: The assumed size of a record while it is not known, bytes.
RECORD_BYTES = 1024.0


@dataclass(frozen=True)
class Load:
    """The load: the number of flows and of their sources, all their partitions, and positions of
    consumer groups in these. Rates cover what all flows produce, so records that go to two targets
    count twice; None if not known yet."""

    flows: int = 1
    sources: int = 1
    partitions: int = 0
    positions: int = 0
    records_per_second: float | None = None
    bytes_per_second: float | None = None


@dataclass(frozen=True)
class Needs:
    """What to provide: `cores` for the given rate (without one, for a steady trickle of records),
    at rest, and for each further 1,000 records/s of their size. A rate of None is not known."""

    cores: float
    cores_at_rest: float
    cores_per_1000_records: float
    memory_gib: float
    records_per_second: float | None
    bytes_per_second: float | None


def needs(load: Load, kind: LakeKind, utilisation: float = UTILISATION) -> Needs:
    """Calculate what flows need with a kind of lake. No flows need nothing."""
    rest = cores_at_rest(load, kind)
    per_thousand = cores_of_records(1_000.0, 1_000.0 * _record_bytes(load), kind)
    rate, size = load.records_per_second, load.bytes_per_second
    moving = _batches(load, kind)
    records = cores_of_records(rate, size or rate * RECORD_BYTES, kind) if rate else 0.0
    return Needs(
        cores=_up(1, (rest + moving + records) / utilisation),
        cores_at_rest=_up(2, rest / utilisation),
        cores_per_1000_records=_up(3, per_thousand / utilisation),
        memory_gib=_up(1, HEADROOM * memory_mib(load, kind) / 1024),
        records_per_second=rate,
        bytes_per_second=size,
    )


def sentence(needs: Needs) -> str:
    """The needs as a sentence for a person."""
    provided = f"about {cores(needs.cores)} and {needs.memory_gib:g} GiB"
    more = f"{cores(needs.cores_per_1000_records)} more"
    if needs.records_per_second is None:
        return (
            f"this needs {provided} once records come all the time, {cores(needs.cores_at_rest)} "
            f"at rest, and for each 1,000 records/s of 1 KB {more}: no rate is known yet"
        )
    return (
        f"this needs {provided} for {needs.records_per_second:,.0f} records/s, and for each 1,000 "
        f"more of that size {more}"
    )


def cores(number: float) -> str:
    """A number of cores, in words."""
    return f"{number:g} core" if number == 1 else f"{number:g} cores"


def cores_at_rest(load: Load, kind: LakeKind) -> float:
    """Busy cores while no record comes."""
    if load.flows < 1:
        return 0.0
    return (
        load.sources * _of("idle_cores", kind)
        + max(0, load.flows - load.sources) * _of("flow_cores", kind)
        + load.partitions / 1_000 * _of("partitions_cores", kind)
        + load.positions / 1_000 * _of("positions_cores", kind)
    )


def cores_of_records(records_per_second: float, bytes_per_second: float, kind: LakeKind) -> float:
    """Busy cores for landing and producing at this rate, without the cost per batch."""
    records = records_per_second / 1e6 * _of("record_cpu", kind)
    return records + bytes_per_second / 1e9 * _of("gigabyte_cpu", kind)


def memory_mib(load: Load, kind: LakeKind) -> float:
    """Memory of all processes after a backlog, without mapped files."""
    if load.flows < 1:
        return 0.0
    return (
        _of("memory_mib", kind)
        + (load.flows - 1) * _of("flow_mib", kind)
        + load.partitions / 1_000 * _of("partitions_mib", kind)
        + _of("backlog_mib", kind)
    )


def _batches(load: Load, kind: LakeKind) -> float:
    """Busy cores for batches of any size: at their highest rate, unless fewer records come."""
    if load.flows < 1:
        return 0.0
    further = max(0, load.flows - load.sources) * _of("flow_batches_cores", kind)
    rate = load.records_per_second
    each = load.flows * BATCHES_PER_SECOND[kind]
    share = 1.0 if rate is None else min(1.0, rate / each)
    return share * (load.sources * _of("batches_cores", kind) + further)


def _record_bytes(load: Load) -> float:
    rate, size = load.records_per_second, load.bytes_per_second
    return size / rate if rate and size is not None else RECORD_BYTES


def _of(name: str, kind: LakeKind) -> float:
    return FIGURES[name].values[kind]


def _up(digits: int, value: float) -> float:
    """Round up, so as not to provide less than needed."""
    step = 10.0**-digits
    return round(math.ceil(round(value / step, 6)) * step, digits)
