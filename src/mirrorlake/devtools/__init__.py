"""For development: local clusters, the demo, the benchmark."""
