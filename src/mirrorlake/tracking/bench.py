"""A benchmark as an MLflow run, recorded afterwards: nothing runs beside the measurement."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mirrorlake.tracking.runs import tracked_at

#: Figures of a throughput run that are recorded.
_THROUGHPUT = ("records_per_second", "cpu_seconds_per_million", "seconds")


def record_bench(document: Mapping[str, Any], directory: Path) -> None:
    """Record the document of `run_bench` beside its file, or at MLFLOW_TRACKING_URI."""
    machine = {name: str(value) for name, value in document["machine"].items()}
    with tracked_at(directory, "bench", {**machine, "at": document["at"]}) as tracking:
        tracking.metrics(bench_metrics(document))
        tracking.report(document)


def bench_metrics(document: Mapping[str, Any]) -> dict[str, float]:
    """The figures of all contestants by contestant/figure: mirrorlake/1024/records_per_second."""
    metrics: dict[str, float] = {"seconds": document["seconds"]}
    for size, part in document.get("throughput", {}).items():
        for name, run in part["contestants"].items():
            metrics.update({f"{name}/{size}/{figure}": run[figure] for figure in _THROUGHPUT})
    for name, run in document.get("latency", {}).get("contestants", {}).items():
        metrics.update(
            {f"{name}/latency_{label}_ms": run[f"{label}_ms"] for label in ("p50", "p95", "p99")}
        )
    for name, feel in document.get("feel", {}).items():
        figures = ("start_new_seconds", "start_again_seconds", "idle_cores")
        metrics.update({f"{name}/{figure}": feel[figure] for figure in figures})
    for name, value in document.get("control", {}).items():
        metrics[f"control/{name}"] = value
    return metrics
