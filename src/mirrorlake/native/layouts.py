"""The metadata of a cluster: brokers, topics, and the leaders of partitions. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class TopicLayout(NamedTuple):
    """A topic: its error code, 0 for none; by partition its leader (below 0: none) and replicas."""

    error: int
    leaders: Mapping[int, int]
    replicas: Mapping[int, tuple[int, ...]]


class Layout(NamedTuple):
    """A cluster: its id, host and port of brokers that are up, by their ids, and topics by name."""

    cluster_id: str
    brokers: Mapping[int, tuple[str, int]]
    topics: Mapping[str, TopicLayout]


def layout_of(answer: bytes, names_from: int, cluster_id: str) -> Layout:
    """Parse the result of `metadata_bytes` of records.c."""
    numbers = iter(np.frombuffer(answer, np.int32, names_from // 4).tolist())
    names = iter(answer[names_from:].split(b"\0"))
    brokers = [(next(numbers), next(numbers)) for _ in range(next(numbers))]
    topics = list[TopicLayout]()
    for _ in range(next(numbers)):
        error, leaders, replicas = next(numbers), dict[int, int](), dict[int, tuple[int, ...]]()
        for _ in range(next(numbers)):
            number = next(numbers)
            leaders[number] = next(numbers)
            replicas[number] = tuple(next(numbers) for _ in range(next(numbers)))
        topics.append(TopicLayout(error, leaders, replicas))
    return Layout(
        cluster_id,
        {number: (next(names).decode(), port) for number, port in brokers},
        {next(names).decode(): topic for topic in topics},
    )
