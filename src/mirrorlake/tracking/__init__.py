"""Records runs with MLflow: settings, results, and figures over time (docs/tracking.md).

Recording never disturbs a run: MLflow is imported and called in its own thread, what it cannot take
is dropped, and the end of a run waits for it for seconds only.
"""
