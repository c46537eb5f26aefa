"""One embedded Kafka broker: its settings, its storage, its process."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mirrorlake.devtools.local.ports import is_free
from mirrorlake.devtools.local.process import JvmProcess, start_detached, start_guarded
from mirrorlake.errors import InputError
from mirrorlake.spark.class_archive import BROKERS, archive_flags
from mirrorlake.spark.jars import KAFKA_VERSION, kafka_jars
from mirrorlake.spark.java import find_java

_JVM_FLAGS = (
    "-Xms256m", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
)  # fmt: skip
_FORMAT_SECONDS = 60
_PROTOCOLS = "listener.security.protocol.map"

_LOG4J = """\
status = error
shutdownHook = disable
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %m (%c)%n%throwable
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
# With an authorizer: who asked for what, and by which ACL it was allowed. Silent without one.
logger.authorizer.name = kafka.authorizer.logger
logger.authorizer.level = debug
"""


@dataclass
class Broker:
    """A node of a cluster. It keeps its ports and folder when stopped and started again."""

    node: int
    port: int
    controller_port: int
    directory: Path
    version: str = KAFKA_VERSION
    process: JvmProcess | None = field(default=None)

    @property
    def address(self) -> str:
        """Return `host:port` for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def log_file(self) -> Path:
        """Return the file that the broker's own log goes to."""
        return self.directory / "logs" / "server.log"

    @property
    def settings_file(self) -> Path:
        """Return the broker's properties file; its path also marks the broker's process."""
        return self.directory / "server.properties"

    @property
    def pid(self) -> int | None:
        """Return the process id of the JVM while it runs."""
        return self.process.pid if self.process is not None and self.process.alive() else None

    def prepare(self, settings: Mapping[str, str]) -> None:
        """Write the settings and the logging configuration."""
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{key}={value}" for key, value in settings.items()]
        self.settings_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._logging_file.write_text(_LOG4J.format(log=self.log_file), encoding="utf-8")

    def format(self, cluster_id: str) -> None:
        """Format the storage with Kafka's StorageTool, once per folder."""
        if (self.directory / "data" / "meta.properties").exists():
            return
        output = self.directory / "logs" / "format.log"
        arguments = ["format", "-t", cluster_id, "-c", str(self.settings_file)]
        tool = "kafka.tools.StorageTool"
        command = self._java("128m", tool, *arguments, "--ignore-formatted")
        try:
            with output.open("wb") as log:
                done = subprocess.run(
                    command, stdout=log, stderr=log, timeout=_FORMAT_SECONDS, check=False
                )
        except subprocess.TimeoutExpired:
            raise InputError(
                f"Kafka has not formatted the storage of node {self.node} within "
                f"{_FORMAT_SECONDS} s: this machine may be too busy; try again (see {output})"
            ) from None
        if done.returncode != 0:
            raise InputError(
                f"Kafka could not format the storage of node {self.node}: see {output}"
            )

    def start(self, heap: str, detached: bool) -> None:
        """Start the JVM; it is not ready yet when this returns."""
        for port in (self.port, self.controller_port):
            if not is_free(port):
                raise InputError(
                    f"port {port} of node {self.node} in {self.directory} is taken by another "
                    "process"
                )
        command = self._java(heap, "kafka.Kafka", str(self.settings_file))
        start = start_detached if detached else start_guarded
        self.process = start(
            command, str(self.settings_file), self.directory / "logs" / "stdout.log"
        )

    def _java(self, heap: str, main: str, *arguments: str) -> list[str]:
        """The command line of a Kafka class. MIRRORLAKE_BROKER_JAVA_OPTIONS adds flags."""
        java, class_path = find_java(), str(kafka_jars(version=self.version)[0].parent / "*")
        logging = f"-Dlog4j2.configurationFile={self._logging_file.as_uri()}"
        flags = [
            flag for flag in _JVM_FLAGS if main == "kafka.Kafka" or not flag.startswith("-Xms")
        ]
        if self.version == KAFKA_VERSION:
            flags += archive_flags(BROKERS, java)
        flags += os.environ.get(BROKERS.options, "").split()
        return [str(java), f"-Xmx{heap}", *flags, logging, "-cp", class_path, main, *arguments]

    @property
    def _logging_file(self) -> Path:
        return self.directory / "log4j2.properties"


def settings_of(
    broker: Broker, quorum: list[Broker], brokers: int, extra: Mapping[str, str]
) -> dict[str, str]:
    """Return settings for tests of a broker in a cluster of `brokers`; `extra` overrides them.

    `listeners` and `listener.security.protocol.map` of `extra` are added to ours instead:
    `TLS://127.0.0.1:9999` and `TLS:SSL` give the only broker of a cluster a second listener;
    `advertised.listeners` is its address for clients that come by another route.
    """
    copies = str(min(3, brokers))
    controls = any(member.node == broker.node for member in quorum)
    doors = [f"PLAINTEXT://{broker.address}", *filter(None, [extra.get("listeners")])]
    found_at = (
        [doors[0], extra["advertised.listeners"]] if "advertised.listeners" in extra else doors
    )
    inner = [f"CONTROLLER://127.0.0.1:{broker.controller_port}"] if controls else []
    protocols = ["PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", *filter(None, [extra.get(_PROTOCOLS)])]
    voters = ",".join(f"{member.node}@127.0.0.1:{member.controller_port}" for member in quorum)
    return {
        "node.id": str(broker.node),
        "process.roles": "broker,controller" if controls else "broker",
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(broker.directory / "data"),
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "5",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "5",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "5",
        "min.insync.replicas": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.backoff.ms": "200",
        # No-op records twice a second, most of an idle broker's work.
        "metadata.max.idle.interval.ms": "0",
        # A broker killed with -9 may register only when its old session expired: 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        **extra,
        "listeners": ",".join([*doors, *inner]),
        "advertised.listeners": ",".join(found_at),
        _PROTOCOLS: ",".join(protocols),
    }
