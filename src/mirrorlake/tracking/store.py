"""The one module that calls MLflow, whose import takes seconds: it happens with a store."""

import atexit
import importlib
import logging
import os
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mirrorlake.config.metrics import Tracking
from mirrorlake.config.references import env_provider, resolve
from mirrorlake.extras import needs
from mirrorlake.kafka.secrets import secret_provider, secret_stores

#: How long one request may take, seconds; none is retried: the next figures follow soon.
REQUEST_SECONDS = 5
#: MLflow's own settings, unless the user has set them: give up soon, and send no telemetry.
_SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": str(REQUEST_SECONDS),
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
_FOLDER = "_mlflow"
_SQLITE = "sqlite:///"
#: MLflow's limit for the length of a parameter.
_PARAM_LENGTH = 500
#: Held while a store is made; the end of the process waits for it. MLflow imports C++ libraries,
#: and ending a daemon thread inside one of them aborts the process.
_making = threading.Lock()
atexit.register(_making.acquire, timeout=60)


class MlflowStore:
    """Where runs are recorded: an experiment of an MLflow tracking server, a workspace or a local
    store; created if missing. Every call may raise whatever MLflow raises."""

    def __init__(self, uri: str, experiment: str, artifacts: Path | None = None) -> None:
        for key, value in _SETTINGS.items():
            os.environ.setdefault(key, value)
        if artifacts is not None:
            artifacts.mkdir(parents=True, exist_ok=True)
        with _making, needs("tracking"):
            mlflow = importlib.import_module("mlflow")
            for noisy in ("mlflow", "alembic"):
                logging.getLogger(noisy).setLevel(logging.ERROR)
            self._entities: Any = importlib.import_module("mlflow.entities")
            if artifacts is not None:
                _make_database(Path(uri.removeprefix(_SQLITE)), mlflow.MlflowClient)
            self._client: Any = mlflow.MlflowClient(tracking_uri=uri)
        self._experiment = experiment
        self._artifacts = artifacts
        self._experiment_id: str | None = None

    def begin(self, name: str, tags: Mapping[str, str], started_ms: int) -> str:
        """Begin a run and return its id."""
        if self._experiment_id is None:
            self._experiment_id = self._find_or_make_experiment()
        run = self._client.create_run(
            self._experiment_id, start_time=started_ms, tags=dict(tags), run_name=name
        )
        return str(run.info.run_id)

    def _find_or_make_experiment(self) -> str:
        experiment = self._client.get_experiment_by_name(self._experiment)
        if experiment is not None:
            return str(experiment.experiment_id)
        location = None if self._artifacts is None else self._artifacts.as_uri()
        return str(self._client.create_experiment(self._experiment, artifact_location=location))

    def params(self, run: str, values: Mapping[str, str]) -> None:
        """Add parameters."""
        params = [self._entities.Param(key, value[:_PARAM_LENGTH]) for key, value in values.items()]
        self._client.log_batch(run, params=params)

    def metrics(self, run: str, values: Mapping[str, float], at_ms: int, step: int) -> None:
        """Add one value to each metric."""
        metrics = [
            self._entities.Metric(key, float(value), at_ms, step) for key, value in values.items()
        ]
        self._client.log_batch(run, metrics=metrics)

    def text(self, run: str, name: str, content: str) -> None:
        """Add an artifact."""
        self._client.log_text(run, content, name)

    def end(self, run: str, status: str) -> None:
        """End a run: FINISHED, FAILED or KILLED."""
        self._client.set_terminated(run, status)

    def runs(self) -> list[Any]:
        """All runs of the experiment, newest first, as MLflow's entities; empty without one."""
        experiment = self._client.get_experiment_by_name(self._experiment)
        if experiment is None:
            return []
        return list(self._client.search_runs([experiment.experiment_id], max_results=1000))

    def history(self, run: str, metric: str) -> list[tuple[int, float]]:
        """All values of a metric: (milliseconds since 1970, value)."""
        return [
            (point.timestamp, point.value) for point in self._client.get_metric_history(run, metric)
        ]


def _make_database(file: Path, client: Callable[..., object]) -> None:
    """Create a local store's database atomically, unless it exists.

    MLflow creates its tables in many committed steps: a process that is killed in between, or races
    with another one, leaves a file that cannot be opened later. So it is created in a temporary
    folder, and the first one linked into place wins.
    """
    if file.exists():
        return
    with tempfile.TemporaryDirectory(prefix="making-", dir=file.parent) as folder:
        fresh = Path(folder) / file.name
        client(tracking_uri=f"{_SQLITE}{fresh}")
        with suppress(FileExistsError):
            os.link(fresh, file)


def place_of(tracking: Tracking, directory: Path | None) -> tuple[str, Path | None]:
    """The tracking URI, and the artifact folder of a local store. `directory` is the lake's, None
    for one in a catalog. Raises TopologyError for a reference without a value."""
    if tracking.uri is not None:
        return resolve(
            tracking.uri,
            {"env": env_provider(os.environ), "secret": secret_provider(secret_stores(os.environ))},
        ), None
    if uri := os.environ.get("MLFLOW_TRACKING_URI"):
        return uri, None
    if directory is None or "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return "databricks", None
    folder = directory.absolute() / _FOLDER
    return f"{_SQLITE}{folder / 'mlflow.db'}", folder / "artifacts"


def open_store(tracking: Tracking, directory: Path | None) -> MlflowStore:
    """Open the store of a topology's `tracking` block."""
    uri, artifacts = place_of(tracking, directory)
    experiment = tracking.experiment
    if uri.startswith("databricks") and not experiment.startswith("/"):
        experiment = f"/Shared/{experiment}"  # a workspace accepts only absolute paths
    return MlflowStore(uri, experiment, artifacts)


def described(tracking: Tracking, directory: Path | None) -> str:
    """Where runs are recorded, for a sentence, without possible secrets."""
    if tracking.uri is not None and "${" in tracking.uri:
        return re.sub(r"://[^@]*@", "://", tracking.uri)
    uri, _ = place_of(tracking, directory)
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else uri
