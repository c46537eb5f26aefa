"""mirrorlake: Kafka replication through Delta Lake, exactly once, with an exact map of offsets."""

__version__ = "0.1.0"
