"""Notebook 06: compares MLflow runs, and estimates the cores for a load."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from statistics import linear_regression
from typing import Any

import altair as alt
import pyarrow as pa

from mirrorlake.config.metrics import Tracking
from mirrorlake.library.capacity import RECORD_BYTES, UTILISATION, Load, needs
from mirrorlake.library.capacity_figures import KINDS
from mirrorlake.notebook import charts
from mirrorlake.notebook.host import Notebook
from mirrorlake.tracking.store import MlflowStore, open_store

#: How many runs have all their figures read; older ones are only in the table of runs.
NEWEST = 20
#: The loads to answer for, as multiples of the one asked for.
_SHARES = (0.25, 0.5, 1.0, 2.0, 4.0)
#: The name of the cost measured on runs of `run`.
OWN = "runs of this lake"
_RUNS = (
    "started", "command", "status", "cores", "records", "seconds", "records_per_second",
    "cpu_seconds_per_million",
)  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """The cost of a run: busy cores without records, and CPU seconds per million records."""

    idle_cores: float
    cpu_seconds_per_million: float

    def cores(self, records_per_second: float, utilisation: float = 0.7) -> float:
        """Cores for a load if `utilisation` of them is busy; the rest is for peaks and backlogs."""
        busy = self.idle_cores + records_per_second * self.cpu_seconds_per_million / 1e6
        return busy / utilisation


@dataclass(frozen=True)
class Measured:
    """An experiment's runs, samples (records_per_second, cpu_cores, run), and costs by origin."""

    runs: list[dict[str, Any]]
    samples: list[dict[str, Any]]
    costs: dict[str, Cost]


def measured(nb: Notebook) -> Measured:
    """Read the experiment of the widgets `tracking_uri` and `experiment`, else the lake's."""
    tracking = Tracking(
        uri=nb.widget("tracking_uri") or None, experiment=nb.widget("experiment") or "mirrorlake"
    )
    store = open_store(tracking, nb.directory)
    runs = store.runs()
    samples = [sample for run in runs[:NEWEST] for sample in _samples(store, run)]
    costs: dict[str, Cost] = {}
    points = [(sample["records_per_second"], sample["cpu_cores"]) for sample in samples]
    if (cost := fitted(points)) is not None:
        costs[OWN] = cost
    for run in runs:
        costs = {**_bench_costs(run), **costs}
    return Measured([_row(run) for run in runs], samples, costs)


def _samples(store: MlflowStore, run: Any) -> list[dict[str, Any]]:
    """Records per second and busy cores of every half minute of a run."""
    if run.data.tags.get("mirrorlake.command") != "run":
        return []
    rates = dict(store.history(run.info.run_id, "records_per_second"))
    cores = dict(store.history(run.info.run_id, "cpu_cores"))
    return [
        {"records_per_second": rates[at], "cpu_cores": cores[at], "run": run.info.run_name}
        for at in sorted(rates.keys() & cores.keys())
    ]


def _bench_costs(run: Any) -> dict[str, Cost]:
    return {
        f"benchmark, {name.split('/')[1]} B a record": Cost(0.0, value)
        for name, value in run.data.metrics.items()
        if name.startswith("mirrorlake/") and name.endswith("/cpu_seconds_per_million")
    }


def _row(run: Any) -> dict[str, Any]:
    metrics, params = run.data.metrics, run.data.params
    records, seconds, cpu = map(metrics.get, ("records", "seconds", "cpu_seconds"))
    return {
        "started": datetime.fromtimestamp(run.info.start_time / 1000, timezone.utc),
        "command": run.data.tags.get("mirrorlake.command"),
        "status": run.info.status,
        "cores": params.get("cores"),
        "records": records,
        "seconds": seconds,
        "records_per_second": records / seconds if records is not None and seconds else None,
        "cpu_seconds_per_million": cpu / records * 1e6 if cpu is not None and records else None,
    }


def runs(measured: Measured) -> pa.Table:
    """One row per run, newest first."""
    schema = pa.schema(
        [("started", pa.timestamp("us", tz="UTC"))]
        + [(name, pa.string()) for name in ("command", "status", "cores")]
        + [(name, pa.float64()) for name in _RUNS[4:]]
    )
    return pa.Table.from_pylist(measured.runs, schema=schema)


def answers(nb: Notebook, measured: Measured) -> pa.Table:
    """Cores for the widgets' load, and for loads around it, by the origin of the cost."""
    load, utilisation = nb.number("records_per_second", 10_000), nb.number("utilisation", 0.7)
    rows = [
        {
            "found_from": name,
            "records_per_second": load * share,
            "cores": round(cost.cores(load * share, utilisation), 2),
            "cpu_seconds_per_million": round(cost.cpu_seconds_per_million, 1),
            "idle_cores": round(cost.idle_cores, 2),
        }
        for name, cost in sorted(measured.costs.items())
        for share in _SHARES
    ]
    names = ("records_per_second", "cores", "cpu_seconds_per_million", "idle_cores")
    schema = pa.schema([("found_from", pa.string()), *((name, pa.float64()) for name in names)])
    return pa.Table.from_pylist(rows, schema=schema)


def sentence(nb: Notebook, measured: Measured) -> str:
    """The answer for the widgets' load."""
    load, utilisation = nb.number("records_per_second", 10_000), nb.number("utilisation", 0.7)
    if not measured.costs:
        return (
            "No run has been recorded from which a cost can be calculated: run `mirrorlake run` "
            "for some minutes under load, or `mirrorlake bench`, with tracking on "
            "(docs/tracking.md), and open this notebook again."
        )
    parts = [
        f"{cost.cores(load, utilisation):.1f} cores by {name} ({cost.cpu_seconds_per_million:.0f} "
        "CPU s per million)"
        for name, cost in sorted(measured.costs.items())
    ]
    return f"{load:,.0f} records/s, {utilisation:.0%} busy: " + "; ".join(parts)


def by_figures(nb: Notebook) -> pa.Table:
    """The needs of the widgets' load for each kind of lake, from the developers' measurements on
    one machine (docs/capacity.md): for use before there are own runs."""
    rate, size = nb.number("records_per_second", 10_000), nb.number("record_bytes", RECORD_BYTES)
    load = Load(
        partitions=round(nb.number("partitions", 100)),
        positions=round(nb.number("group_positions", 0)),
        records_per_second=rate,
        bytes_per_second=rate * size,
    )
    names = ("cores", "cores_at_rest", "cores_per_1000_records", "memory_gib")
    rows = []
    for kind in KINDS:
        found = needs(load, kind, nb.number("utilisation", UTILISATION))
        rows.append({"lake": kind, **{name: getattr(found, name) for name in names}})
    schema = pa.schema([("lake", pa.string()), *((name, pa.float64()) for name in names)])
    return pa.Table.from_pylist(rows, schema=schema)


def chart(nb: Notebook, measured: Measured) -> alt.LayerChart | None:
    """Samples of the runs, and a line of the cores to provide; None without samples."""
    if OWN not in measured.costs:
        return None
    seen = (sample["records_per_second"] for sample in measured.samples)
    top = max(nb.number("records_per_second", 10_000), *seen)
    utilisation = nb.number("utilisation", 0.7)
    needed = [
        {"records_per_second": load, "cores": measured.costs[OWN].cores(load, utilisation)}
        for load in (0.0, float(top))
    ]
    return charts.capacity(measured.samples, needed)


def fitted(points: Sequence[tuple[float, float]]) -> Cost | None:
    """Fit a cost to samples (records per second, busy cores); None if there were practically no
    records.

    A straight line through the points, by least squares. If its slope is not positive or its idle
    part negative, the whole cost is put on the records, never too little for such loads.
    """
    points = [(rate, cores) for rate, cores in points if rate >= 0 and cores >= 0]
    records, busy = sum(rate for rate, _ in points), sum(cores for _, cores in points)
    if records < 1:  # less than one record a second in all: the flows were idle
        return None
    slope, idle = 0.0, 0.0
    if len({rate for rate, _ in points}) > 1:  # no line is the nearest to points above one another
        slope, idle = linear_regression(*zip(*points, strict=True))
    if slope <= 0 or idle < 0:
        return Cost(0.0, busy / records * 1e6)
    return Cost(idle, slope * 1e6)
