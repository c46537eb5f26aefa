"""The demo: its script, and the consumer group that survives it."""
