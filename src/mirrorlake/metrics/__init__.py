"""What a running process says of itself to Prometheus, and to probes (docs/metrics.md)."""
