"""The benchmark's payload: JSON of a given size that compresses like real data, with lz4."""

import json
import random
import subprocess
from pathlib import Path

from mirrorlake.errors import InputError
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo
from mirrorlake.spark.jars import mirror_jars
from mirrorlake.spark.java import find_java

PARTITIONS = 6
#: Distinct lines of a payload file; Kafka's ProducerPerformance picks from them at random.
LINES = 20_000
_LOAD_SECONDS = 900
_WORDS = (
    "order", "customer", "shipped", "pending", "invoice", "street", "market", "online", "parcel",
    "refund", "gift", "coupon", "basket", "store", "season", "blue", "green", "large", "small",
    "cotton", "leather", "wool", "express", "standard", "return", "exchange", "address", "payment",
    "card", "account", "total",
)  # fmt: skip
#: The smallest JSON record with all fields.
LEAST_BYTES = 80
_STATUS = ("created", "paid", "packed", "shipped", "delivered", "returned")


def payload_lines(size: int, count: int) -> list[str]:
    """JSON records of `size` bytes, always the same. Raises InputError below `LEAST_BYTES`."""
    if size < LEAST_BYTES:
        raise InputError(f"JSON records of {size} bytes are too small: use {LEAST_BYTES} or more")
    chance = random.Random(7)
    return [_record(chance, size) for _ in range(count)]


def _record(chance: random.Random, size: int) -> str:
    fields: dict[str, object] = {"id": chance.getrandbits(40), "status": chance.choice(_STATUS)}
    if size >= 400:
        fields["customer"] = {
            "id": chance.getrandbits(32),
            "segment": chance.choice("ABCD"),
            "since": 2026,
        }
        fields["items"] = [
            {
                "sku": f"{chance.getrandbits(32):08x}",
                "qty": chance.randint(1, 9),
                "price": chance.randint(1, 9999) / 100,
            }
            for _ in range(size // 170)
        ]
    fields["amount"] = chance.randint(1, 99_999) / 100
    fields["note"] = ""
    room = size - len(json.dumps(fields, separators=(",", ":")))
    words = " ".join(chance.choice(_WORDS) for _ in range(room // 3 + 1))
    fields["note"] = words[: max(0, room)]
    return json.dumps(fields, separators=(",", ":"))


def load_topic(
    source: ClusterAdmin,
    topic: str,
    size: int,
    records: int,
    directory: Path,
    *,
    partitions: int = PARTITIONS,
) -> None:
    """Create and fill a topic from a payload file with Kafka's load tool. Raises InputError."""
    source.create_topics([TopicInfo(topic, partitions, 1)])
    payload = payload_file(directory, size)
    log = directory / f"load-{topic}.log"
    with log.open("wb") as output:
        command = load_command(source.address, topic, records, payload)
        try:
            subprocess.run(command, stdout=output, stderr=output, timeout=_LOAD_SECONDS, check=True)
            loaded = True
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            loaded = False
    ends = source.end_offsets([(topic, partition) for partition in range(partitions)])
    if not loaded or sum(ends.values()) != records:
        raise InputError(f"topic {topic} could not be filled with {records} records: see {log}")


def payload_file(directory: Path, size: int, lines: int = LINES) -> Path:
    """Write distinct records of a size to a file for the load tool to pick from."""
    payload = directory / f"payload-{size}.txt"
    payload.write_text("\n".join(payload_lines(size, lines)) + "\n", encoding="utf-8")
    return payload


def load_command(bootstrap_servers: str, topic: str, records: int, payload: Path) -> list[str]:
    """The command of Kafka's load tool that fills a topic with lines of a file."""
    tool = [str(find_java()), "-Xmx512m", "-cp", str(mirror_jars()[0].parent / "*")]
    tool += ["org.apache.kafka.tools.ProducerPerformance", "--topic", topic]
    tool += ["--num-records", str(records), "--throughput", "-1"]
    tool += ["--payload-file", str(payload), "--producer-props"]
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "compression.type": "lz4",
        "batch.size": "131072",
        "linger.ms": "20",
        "acks": "1",
    }
    return [*tool, *(f"{name}={value}" for name, value in settings.items())]
