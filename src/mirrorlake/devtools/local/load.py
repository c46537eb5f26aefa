"""A load to replicate: a process that writes orders and payments at a steady rate, with a group
that reads them.

    python -m mirrorlake.devtools.local.load BOOTSTRAP_SERVERS RATE SECONDS STATE_FILE

It ends by SIGTERM, or by itself after SECONDS, lest a forgotten one fill a disk. The state file
only marks the process, so that `local down` ends no other.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorlake.devtools.local.process import JvmProcess, start_detached

#: Its topics, with their numbers of partitions.
TOPICS = {"orders": 3, "payments": 2}
GROUP = "billing"
#: When it ends by itself, seconds.
SECONDS = 3600
STATE_FILE = "load.json"
_TICK_SECONDS, _CUSTOMERS = 0.1, 500
_STOP_SECONDS = 10.0
#: No output of librdkafka's, only that of `local up`.
_QUIET = {"log_level": 0}


def start_load(directory: Path, bootstrap_servers: str, brokers: int, rate: int) -> int:
    """Create topics, start the process unless it runs, return its id. `rate`: records/s in all."""
    running = load_pid(directory)
    if running is not None:
        return running
    _make_topics(bootstrap_servers, min(brokers, 3))
    state = directory.absolute() / STATE_FILE
    arguments = [bootstrap_servers, str(rate), str(SECONDS), str(state)]
    command = [sys.executable, "-m", __name__, *arguments]
    process = start_detached(command, str(state), directory / "load.log")
    known = {"pid": process.pid, "bootstrap_servers": bootstrap_servers, "rate": rate}
    state.write_text(json.dumps(known) + "\n")
    return process.pid


def stop_load(directory: Path) -> None:
    """End the process of a folder, if it runs."""
    process = _process(directory)
    if process is None:
        return
    process.signal(signal.SIGTERM)
    if not process.wait(_STOP_SECONDS):
        process.signal(signal.SIGKILL)
        process.wait(_STOP_SECONDS)
    (directory / STATE_FILE).unlink(missing_ok=True)


def load_pid(directory: Path) -> int | None:
    """The id of the process that writes to a cluster of a folder; None if there is none."""
    process = _process(directory)
    return process.pid if process is not None and process.alive() else None


def loaded_servers(directory: Path) -> str | None:
    """The bootstrap servers that the process of a folder writes to; None if it does not run."""
    if load_pid(directory) is None:
        return None
    return str(
        json.loads((directory / STATE_FILE).read_text(encoding="utf-8"))["bootstrap_servers"]
    )


def _process(directory: Path) -> JvmProcess | None:
    state = directory.absolute() / STATE_FILE
    try:
        pid = int(json.loads(state.read_text(encoding="utf-8"))["pid"])
    except FileNotFoundError:
        return None
    return JvmProcess(pid, str(state))


def _make_topics(bootstrap_servers: str, factor: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, **_QUIET})
    there = admin.list_topics(timeout=20).topics
    wanted = [NewTopic(name, count, factor) for name, count in TOPICS.items() if name not in there]
    for made in (admin.create_topics(wanted) if wanted else {}).values():
        made.result(20)


def main(arguments: Sequence[str]) -> None:
    """Write until it is stopped."""
    bootstrap_servers, rate, seconds = arguments[0], int(arguments[1]), float(arguments[2])
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    reader = threading.Thread(target=_read, args=(bootstrap_servers, stop), name=GROUP)
    reader.start()
    try:
        _write(bootstrap_servers, rate, time.monotonic() + seconds, stop)
    finally:
        stop.set()
        reader.join(_STOP_SECONDS)


def _write(bootstrap_servers: str, rate: int, until: float, stop: threading.Event) -> None:
    settings = {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True}
    producer = Producer({**settings, "linger.ms": 5, **_QUIET})
    began, sent, names = time.monotonic(), 0, list(TOPICS)
    numbers = random.Random(os.getpid())
    while not stop.wait(_TICK_SECONDS) and time.monotonic() < until:
        due = int((time.monotonic() - began) * rate)
        for number in range(sent, due):
            customer = f"customer-{numbers.randrange(_CUSTOMERS)}"
            amount = round(numbers.uniform(1, 500), 2)
            value = {"number": number, "customer": customer, "amount": amount}
            producer.produce(names[number % len(names)], json.dumps(value), customer)
            producer.poll(0)
        sent = due
    producer.flush(_STOP_SECONDS)


def _read(bootstrap_servers: str, stop: threading.Event) -> None:
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": GROUP, **_QUIET}
    settings |= {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "auto.commit.interval.ms": 1000})
    with closing(consumer):
        consumer.subscribe([*TOPICS])
        while not stop.is_set():
            consumer.consume(500, timeout=1.0)


if __name__ == "__main__":
    main(sys.argv[1:])
