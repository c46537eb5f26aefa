"""The figures behind capacity estimates, each with its source. Pure.

`make bench ARGS="--only capacity"` measures those of a folder anew, and shows both. A figure not
measured on a kind of lake says so under `estimated`. docs/capacity.md lists them all. Measured on
27 November 2026, on two cores, beside tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

#: Where a lake lies: in a folder, in an object store, or as a catalog's own tables.
LakeKind = Literal["folder", "store", "catalog"]
KINDS: tuple[LakeKind, ...] = ("folder", "store", "catalog")


@dataclass(frozen=True)
class Figure:
    """One figure for each kind of lake: its unit, what it measures and its source; `estimated` has
    the kinds of lake on which it was not measured, with the reason for the estimate."""

    unit: str
    what: str
    values: Mapping[LakeKind, float]
    source: str
    estimated: Mapping[LakeKind, str] = field(default_factory=dict)


def _everywhere(value: float) -> Mapping[LakeKind, float]:
    return dict.fromkeys(KINDS, value)


_cores, _cpu, _mib = (partial(Figure, unit) for unit in ("cores", "CPU s", "MiB"))
_AS_IN_A_FOLDER: Mapping[LakeKind, str] = {"store": "as in a folder", "catalog": "as in a folder"}
_TWICE_IN_A_CATALOG: Mapping[LakeKind, str] = {
    **_AS_IN_A_FOLDER,
    "catalog": "twice a folder's, as was measured of 120 B",
}
_CAPACITY = "`bench --only capacity`"
_BACKLOGS = "backlogs in docs/cost.md: 2.1 CPU s a million of 120 B, 7.3 of 1 KB"

#: By name, as in the output of `bench --only capacity`.
FIGURES: Mapping[str, Figure] = {
    "idle_cores": _cores(
        "a flow at rest, its landing and control included",
        {"folder": 0.03, "store": 0.05, "catalog": 0.19},
        f"{_CAPACITY}; in a catalog `bench --only feel --lake catalog`",
        {"store": "its goal: samples and heartbeats are rarer than in a folder"},
    ),
    "flow_cores": _cores(
        "each further flow from the same source, at rest",
        {"folder": 0.01, "store": 0.02, "catalog": 0.1},
        f"{_CAPACITY}, a second target: 0.007",
        {"store": "less than half of the first one", "catalog": "half of the first one"},
    ),
    "partitions_cores": _cores(
        "each 1,000 partitions at rest",
        _everywhere(0.045),
        f"{_CAPACITY}, 2,000 partitions: 0.118 cores at rest",
        _AS_IN_A_FOLDER,
    ),
    "positions_cores": _cores(
        "each 1,000 positions of consumer groups at rest",
        _everywhere(0.006),
        f"{_CAPACITY}, 50 groups with 5,000 positions: 0.149 cores with them, 0.118 without",
        _AS_IN_A_FOLDER,
    ),
    "batches_cores": _cores(
        "records that come all the time, however few, in one flow",
        {"folder": 0.25, "store": 0.4, "catalog": 0.4},
        "1,000 records/s of 200 B: 0.19 cores in all by "
        f"{_CAPACITY}, 0.25 and 0.31 by `bench --only latency`; in a catalog 0.71 by "
        "`bench --only feel --lake catalog`, with a batch every 1.2 s",
        {"store": "a folder's, and the requests"},
    ),
    "flow_batches_cores": _cores(
        "the same, each further flow",
        {"folder": 0.2, "store": 0.3, "catalog": 0.3},
        f"{_CAPACITY}, a second target: 0.39 cores in all, 0.19 with one",
        {"store": "as a folder's, in proportion", "catalog": "half of the first one"},
    ),
    "record_cpu": _cpu(
        "a million records, landed and produced, whatever they hold",
        {"folder": 1.4, "store": 1.4, "catalog": 2.8},
        _BACKLOGS,
        _TWICE_IN_A_CATALOG,
    ),
    "gigabyte_cpu": _cpu(
        "a GB of keys and values, landed and produced",
        {"folder": 5.8, "store": 5.8, "catalog": 11.6},
        _BACKLOGS,
        _TWICE_IN_A_CATALOG,
    ),
    "memory_mib": _mib(
        "all processes of one flow at rest",
        {"folder": 1060, "store": 1100, "catalog": 1500},
        f"{_CAPACITY}: 1,062 MiB",
        {"store": "a folder's, and a client of the store", "catalog": "a session that works"},
    ),
    "partitions_mib": _mib(
        "each 1,000 partitions",
        _everywhere(60),
        "not measured yet",
        {**_AS_IN_A_FOLDER, "folder": "60 KB a partition: its index, samples and positions"},
    ),
    "flow_mib": _mib(
        "each further flow from the same source",
        _everywhere(60),
        "not measured yet",
        {**_AS_IN_A_FOLDER, "folder": "two producers and some clients of Kafka"},
    ),
    "backlog_mib": _mib(
        "what a backlog at full rate adds, on two cores",
        _everywhere(1700),
        "eight minutes at full rate, docs/not_obvious.md: 1.7 GB of two workers; 752 MiB behind "
        f"some seconds by {_CAPACITY}",
        _AS_IN_A_FOLDER,
    ),
}
