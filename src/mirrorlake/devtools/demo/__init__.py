"""The demo: its story, and the consumer group that survives it."""
