"""People get to where they want to be by what README and messages say, in an empty folder: its
first steps are typed word for word, and an on-call person types nothing but what a message
names."""

import os
import re
import signal
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.support.kafka import create_topic, delete_topic
from tests.support.walks import arrives, block_of, local_clusters, running, typed

pytestmark = pytest.mark.slow


def named(said: str, behind: str) -> str:
    """The command that a message names behind some words."""
    found = re.search(rf"{behind}: (mirrorlake .+?)(?: \(or .+\))?$", said, re.MULTILINE)
    assert found, f"no command behind {behind!r} in:\n{said}"
    return found[1]


def decided(folder: Path) -> None:
    """From an alert to its decision: each command is the one that the message before it names."""
    alerted = typed(folder, "mirrorlake status", code=1)
    listed = typed(folder, named(alerted, "decide by"))
    after = typed(folder, named(listed, "decide the first of these by"))
    assert "`mirrorlake run`" in after and "`mirrorlake status`" in after, after


def test_a_target_topic_that_was_deleted(tmp_path: Path) -> None:
    with local_clusters(tmp_path) as known:
        create_topic(known["east"], "orders")
        fill(known["east"], "orders", b"x", 100)
        typed(tmp_path, "mirrorlake run --once")
        delete_topic(known["west"], "east.orders")
        fill(known["east"], "orders", b"y", 100)
        typed(tmp_path, "mirrorlake run --once", code=1)
        decided(tmp_path)
        typed(tmp_path, "mirrorlake run --once")
        assert "nothing needs you" in typed(tmp_path, "mirrorlake status")
        assert "no difference" in typed(tmp_path, "mirrorlake verify")


def test_a_record_that_the_target_refuses(tmp_path: Path) -> None:
    with local_clusters(tmp_path) as known:
        config = tmp_path / "mirrorlake.yml"
        document = yaml.safe_load(config.read_text(encoding="utf-8"))
        document["flows"]["east->west"]["sync_topic_configs_enabled"] = False
        config.write_text(yaml.safe_dump(document), encoding="utf-8")
        create_topic(known["east"], "orders")
        create_topic(known["west"], "east.orders", max_message_bytes="5000")
        fill(known["east"], "orders", b"x", 10)
        fill(known["east"], "orders", os.urandom(20_000), 1)
        typed(tmp_path, "mirrorlake run --once", code=1)
        limit_of(known["west"], "east.orders", 1_000_000)
        decided(tmp_path)
        typed(tmp_path, "mirrorlake run --once")
        assert "nothing needs you" in typed(tmp_path, "mirrorlake status")
        assert "no difference" in typed(tmp_path, "mirrorlake verify")


def fill(bootstrap: str, topic: str, value: bytes, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for _ in range(count):
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def limit_of(bootstrap: str, topic: str, size: int) -> None:
    """Have a topic take records of that size."""
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def test_readmes_first_steps_word_for_word(tmp_path: Path) -> None:
    up, plan, run = block_of("README.md", "mirrorlake local up --load")
    steps = block_of("README.md", "mirrorlake trace")
    assert (up, run, steps[-1]) == (
        "mirrorlake local up --load",
        "mirrorlake run",
        "mirrorlake local down",
    )
    with local_clusters(tmp_path, "--load"):
        typed(tmp_path, plan)
        with running(tmp_path, run.split(), signal.SIGINT):
            arrives(tmp_path, "orders", 100)
            for line in steps[:-1]:
                if line != "mirrorlake dashboard":  # which has tests of its own, and does not end
                    typed(tmp_path, line)
