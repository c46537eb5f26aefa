"""The `tracking` block: which runs are recorded with MLflow, and where (docs/tracking.md)."""

from mirrorlake.config.fields import Model


class Tracking(Model):
    """Every `run`, `bench`, `failover` and `failback` is recorded in an MLflow experiment, unless
    `enabled` is false.

    `uri` is MLflow's tracking URI and may hold references. The default is MLFLOW_TRACKING_URI, then
    the workspace on Databricks, then a SQLite store in the lake's directory.
    """

    enabled: bool = True
    uri: str | None = None
    experiment: str = "mirrorlake"
