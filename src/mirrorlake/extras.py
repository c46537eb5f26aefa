"""The extras of the package: libraries that only one part of mirrorlake needs, so that `pip install
mirrorlake` does not install them.

Without extras the package answers and plans, and contains what Spark's tasks import. A part that
needs more imports it within `needs(extra)`, which reports a missing library in one sentence with
the line to type. Threads of a run (`spark/causes.py`) and commands report any failed import so.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

from mirrorlake.errors import MissingExtra


@dataclass(frozen=True)
class Extra:
    """An extra: its purpose, as the beginning of a sentence, and libraries by imported module."""

    purpose: str
    libraries: Mapping[str, str]


#: psutil is in two: it measures recorded runs, and ends the processes of local clusters, whose jars
#: Spark's resolver downloads.
EXTRAS: Mapping[str, Extra] = {
    "spark": Extra(
        "a Spark session, or a cluster of this machine,",
        {"pyspark": "pyspark", "py4j": "pyspark", "pandas": "pandas", "psutil": "psutil"},
    ),
    "dashboard": Extra(
        "a dashboard, or a chart of a notebook,",
        {"altair": "altair", "vl_convert": "vl-convert-python"},
    ),
    "stores": Extra("a lake in an object store", {"obstore": "obstore", "fsspec": "fsspec"}),
    "hdfs": Extra("a lake in HDFS", {"hdfs_native": "hdfs-native", "fsspec": "fsspec"}),
    "tracking": Extra(
        "the recording of runs",
        {
            "mlflow": "mlflow-skinny",
            "sqlalchemy": "sqlalchemy",
            "alembic": "alembic",
            "psutil": "psutil",
        },
    ),
    "import": Extra("the reading of MirrorMaker's files", {"javaproperties": "javaproperties"}),
    "databricks": Extra(
        "the SQL warehouse that the topology file names (--engine spark does without it)",
        {"databricks": "databricks-sql-connector"},
    ),
    "unity": Extra(
        "a lake with credentials of Unity Catalog", {"databricks.sdk": "databricks-sdk"}
    ),
    "metrics": Extra(
        "what a run serves for Prometheus", {"prometheus_client": "prometheus-client"}
    ),
    "otlp": Extra(
        "what a run sends by OTLP (`metrics.otlp` of the topology file)",
        {"opentelemetry": "opentelemetry-exporter-otlp-proto-http"},
    ),
}


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Import an extra's libraries in this block. Raises MissingExtra for one not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = _module_of(EXTRAS[extra], error)
        if module is None:
            raise
        raise missing(extra, module) from error


def missing(extra: str, module: str | None = None) -> MissingExtra:
    """The error for a library of an extra that is not installed: that of `module`, or the first."""
    libraries = EXTRAS[extra].libraries
    library = libraries[module or next(iter(libraries))]
    return MissingExtra(
        f"{EXTRAS[extra].purpose} needs {library}, which is not installed: pip install "
        f"'mirrorlake[{extra}]'",
        extra=extra,
        library=library,
    )


def missing_by(error: ModuleNotFoundError) -> MissingExtra | None:
    """Return the same for any failed import; None if the module belongs to no extra."""
    for name, extra in EXTRAS.items():
        if module := _module_of(extra, error):
            return missing(name, module)
    return None


def installed(extra: str) -> bool:
    """Whether an extra's first library is installed. Does not import it, which may take seconds."""
    try:
        return find_spec(next(iter(EXTRAS[extra].libraries))) is not None
    except ImportError:
        return False


def _module_of(extra: Extra, error: ModuleNotFoundError) -> str | None:
    """The module of an extra whose import failed, or that of its submodule or parent package."""
    name = error.name or ""
    return next(
        (
            module
            for module in extra.libraries
            if f"{name}.".startswith(f"{module}.") or f"{module}.".startswith(f"{name}.")
        ),
        None,
    )
