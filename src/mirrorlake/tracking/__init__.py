"""Runs of mirrorlake, recorded with MLflow: what was set, how it went, over time
(docs/tracking.md).

Recording never disturbs: MLflow is imported in a thread of its own, whatever it does is waited for
there, what it cannot take is dropped, and an end waits for it for seconds only.
"""
