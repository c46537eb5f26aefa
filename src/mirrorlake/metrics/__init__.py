"""Metrics of a running process for Prometheus and OTLP, and its probes (docs/metrics.md)."""
