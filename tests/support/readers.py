"""Real consumers of two clients: they join a group, read numbered records, commit, leave; what they
read, in short."""

import json
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from mirrorlake.spark.java import find_java
from tests.support.kafka import taken
from tests.support.mirror_client import client_jars

_READER = Path(__file__).parent / "java" / "GroupReader.java"
_SILENCE_SECONDS = 60.0

#: What a group read, in order: ranges [first, last] of numbers that follow each other by one, by
#: partition.
Numbers = Mapping[int, list[list[int]]]


class Reading(NamedTuple):
    """What one group is to read: up to `limit` records, or to the end; from the beginning where it
    has no position and `reset` is earliest."""

    group: str
    topic: str
    limit: int | None = None


def number_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers in order, as ranges."""
    return joined([[number, number] for number in numbers])


def joined(*parts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Ranges one behind the other; where one goes on by one, they are one."""
    found: list[list[int]] = []
    for first, last in (chunk for part in parts for chunk in part):
        if found and found[-1][1] + 1 == first:
            found[-1][1] = last
        else:
            found.append([first, last])
    return found


def count(numbers: Numbers) -> int:
    """How many records were read."""
    return sum(last - first + 1 for found in numbers.values() for first, last in found)


def read_with_java(bootstrap: str, reset: str, readings: Sequence[Reading]) -> dict[str, Numbers]:
    """By Kafka's own client, one group after the other in one process; raises AssertionError with
    what it said."""
    command = [str(find_java()), "-Xmx512m", "-cp", client_jars(), str(_READER), bootstrap, reset]
    for reading in readings:
        command += [
            reading.group,
            reading.topic,
            str(-1 if reading.limit is None else reading.limit),
        ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    document = json.loads(done.stdout.splitlines()[-1])
    return {
        group: {int(partition): items for partition, items in read.items()}
        for group, read in document.items()
    }


def read_with_python(bootstrap: str, reset: str, readings: Sequence[Reading]) -> dict[str, Numbers]:
    """By confluent-kafka."""
    # Java's `none` is librdkafka's `error`.
    reset = "error" if reset == "none" else reset
    return {reading.group: _read(bootstrap, reset, reading) for reading in readings}


#: The clients by name.
CLIENTS: Mapping[str, Callable[[str, str, Sequence[Reading]], dict[str, Numbers]]] = {
    "java": read_with_java,
    "python": read_with_python,
}


def _read(bootstrap: str, reset: str, item: Reading) -> Numbers:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": item.group,
            "auto.offset.reset": reset,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
        }
    )
    numbers: dict[int, list[list[int]]] = defaultdict(list)
    next_offsets: dict[int, int] = {}
    ended: set[int] = set()
    left = item.limit
    heard = time.monotonic()
    try:
        consumer.subscribe([item.topic])
        while left != 0 and not (next_offsets and ended == next_offsets.keys()):
            messages = taken(consumer, 0.2, 50_000)
            if not next_offsets and (assigned := consumer.assignment()):
                committed = consumer.committed(assigned, 20)
                next_offsets = {place.partition: max(0, place.offset) for place in committed}
            for message in messages:
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    ended.add(message.partition())
                    continue
                if left == 0:
                    break
                left = None if left is None else left - 1
                _note(numbers[message.partition()], int(message.value()))
                next_offsets[message.partition()] = message.offset() + 1
            heard = time.monotonic() if messages else heard
            assert time.monotonic() - heard < _SILENCE_SECONDS, (
                f"group {item.group} gets nothing of {item.topic}"
            )
        positions = [
            TopicPartition(item.topic, partition, offset)
            for partition, offset in next_offsets.items()
        ]
        consumer.commit(offsets=positions, asynchronous=False)
    finally:
        consumer.close()
    return numbers


def _note(found: list[list[int]], number: int) -> None:
    if found and found[-1][1] + 1 == number:
        found[-1][1] = number
    else:
        found.append([number, number])
