"""Fakes for tests of mirrorlake and of projects that use it: in-memory clusters and an in-memory
lake, without Kafka and Spark."""

from mirrorlake.testing.memory_cluster import MemoryCluster
from mirrorlake.testing.memory_lake import MemoryLake

__all__ = ["MemoryCluster", "MemoryLake"]
