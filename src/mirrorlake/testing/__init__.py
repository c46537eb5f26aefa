"""Fakes for tests, also of users: in-memory clusters and lake, without Kafka and Spark."""

from mirrorlake.testing.memory_cluster import MemoryCluster
from mirrorlake.testing.memory_lake import MemoryLake

__all__ = ["MemoryCluster", "MemoryLake"]
