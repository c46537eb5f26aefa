"""A flow of the topics of one test, its groups, and the commands about them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Consumer, TopicPartition
from typer.testing import CliRunner

from mirrorlake.cli.main import app
from tests.support.clusters import ClusterPair
from tests.support.replication import FLOW


@dataclass
class Scene:
    """A flow of the topics of one test, and its groups."""

    clusters: ClusterPair
    topology: Path
    name: str

    def call(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """A command's exit code, and its document."""
        result = CliRunner().invoke(app, ["-c", str(self.topology), *arguments, "--json"])
        assert result.stdout, (result.output, result.exception)
        return result.exit_code, json.loads(result.stdout)

    def run(self, code: int = 0) -> None:
        """`mirrorlake run --once`."""
        result = CliRunner().invoke(app, ["-c", str(self.topology), "run", "--once"])
        assert result.exit_code == code, (result.output, result.exception)

    def failover(self, *arguments: str, word: str = "failover") -> tuple[int, dict[str, Any]]:
        return self.call(word, "--flow", FLOW, *(arguments or ("--all-groups",)))

    def edit(self, **settings: Any) -> None:
        """Change settings of the flow."""
        document = yaml.safe_load(self.topology.read_text(encoding="utf-8"))
        document["flows"][FLOW].update(settings)
        self.topology.write_text(yaml.safe_dump(document), encoding="utf-8")

    def lose_east(self) -> None:
        """The source does not answer any more."""
        document = yaml.safe_load(self.topology.read_text(encoding="utf-8"))
        document["clusters"]["east"]["bootstrap_servers"] = "127.0.0.1:1"
        self.topology.write_text(yaml.safe_dump(document), encoding="utf-8")

    def commit(self, side: str, group: str, offset: int, topic: str | None = None) -> None:
        """Commit a position as a group without members does."""
        consumer = self._consumer(side, group)
        consumer.commit(
            offsets=[TopicPartition(topic or self._topic(side), 0, offset)], asynchronous=False
        )
        consumer.close()

    def position(self, side: str, group: str, topic: str | None = None) -> int:
        """Where a group stands; negative is nowhere."""
        consumer = self._consumer(side, group)
        (place,) = consumer.committed([TopicPartition(topic or self._topic(side), 0)], 20)
        consumer.close()
        return int(place.offset)

    def _topic(self, side: str) -> str:
        return self.name if side == "east" else f"east.{self.name}"

    def _consumer(self, side: str, group: str) -> Consumer:
        bootstrap = self.clusters.east if side == "east" else self.clusters.west
        return Consumer(
            {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
        )
