"""Real Apache Kafka clusters (KRaft) as subprocesses, for tests, the demo and development."""

import base64
import json
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from mirrorlake.attempts import attempts
from mirrorlake.devtools.local.broker import Broker, settings_of
from mirrorlake.devtools.local.ports import free_ports, is_open
from mirrorlake.devtools.local.process import JvmProcess
from mirrorlake.errors import ClusterUnreachable, InputError
from mirrorlake.spark.jars import KAFKA_VERSION, Say, kafka_jars
from mirrorlake.threads import side_by_side

READY_SECONDS = 60.0
STOP_SECONDS = 15.0
STATE_FILE = "cluster.json"


class EmbeddedCluster:
    """A Kafka cluster in a folder. It ends with this process, even by kill -9, unless `detached`.

    >>> with EmbeddedCluster("east", Path("/tmp/east")) as east:  # doctest: +SKIP
    ...     print(east.bootstrap_servers)
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        brokers: int = 1,
        *,
        ports: list[int] | None = None,
        properties: dict[str, str] | None = None,
        heap: str = "512m",
        detached: bool = False,
        version: str = KAFKA_VERSION,
    ) -> None:
        """Describe a cluster. A used folder keeps its data, and its ports if not given.

        `properties` override the settings of every broker. `ports` are the client ports, one per
        broker. `version` is that of Kafka, from 3.7 on.
        """
        if brokers < 1 or (ports is not None and len(ports) != brokers):
            raise InputError(f"cluster {name} needs at least one broker, and one port for each")
        self.name = name
        self.directory = directory.absolute()
        self.properties = dict(properties or {})
        self.heap = heap
        self.detached = detached
        self.version = version
        known = _read_state(self.directory)
        self.cluster_id: str = known.get("cluster_id") or (
            base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        )
        self._brokers = _brokers_of(self.directory, brokers, ports, known, version)

    @classmethod
    def attach(cls, directory: Path) -> "EmbeddedCluster":
        """Return the cluster that an earlier process left in a folder, running or not."""
        state = _read_state(directory.absolute())
        if not state:
            raise InputError(
                f"there is no embedded cluster in {directory}: {STATE_FILE} is missing"
            )
        return cls(
            state["name"],
            directory,
            len(state["brokers"]),
            properties=state["properties"],
            heap=state["heap"],
            detached=True,
            version=state.get("version", KAFKA_VERSION),
        )

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses of all brokers, for clients."""
        return ",".join(broker.address for broker in self._brokers)

    @property
    def pids(self) -> list[int]:
        """Return the process ids of the brokers that run, in order of node."""
        return [broker.pid for broker in self._brokers if broker.pid is not None]

    @property
    def brokers(self) -> int:
        """Return how many brokers the cluster has, running or not."""
        return len(self._brokers)

    @property
    def running(self) -> bool:
        """Return whether every broker's process runs."""
        return len(self.pids) == len(self._brokers)

    def log_file(self, node: int = 0) -> Path:
        """Return the log of one broker."""
        return self._brokers[node].log_file

    def start(self, progress: Say | None = None) -> "EmbeddedCluster":
        """Format new brokers, start those that do not run, and wait until clients can see all."""
        self._refuse_a_foreign_cluster()
        kafka_jars(progress, self.version)
        down = [broker for broker in self._brokers if broker.pid is None]
        for broker in down:
            broker.prepare(settings_of(broker, self._quorum(), len(self._brokers), self.properties))
        side_by_side(lambda broker: broker.format(self.cluster_id), down)
        try:
            for broker in down:
                broker.start(self.heap, self.detached)
            self._write_state()
            self._wait_until_ready(self._brokers)
        except BaseException:
            self._end(down, signal.SIGKILL)
            raise
        return self

    def stop(self) -> None:
        """Stop all brokers by SIGTERM, and by SIGKILL those that do not end within 15 seconds."""
        self._end(self._brokers, signal.SIGTERM)

    def kill(self, node: int = 0) -> None:
        """Kill one broker with kill -9 and wait until it is gone."""
        self._end([self._brokers[node]], signal.SIGKILL)

    def stop_broker(self, node: int = 0) -> None:
        """Stop one broker cleanly."""
        self._end([self._brokers[node]], signal.SIGTERM)

    def start_broker(self, node: int = 0) -> None:
        """Start one broker again, on the same port and data, and wait until clients can see it."""
        broker = self._brokers[node]
        if broker.pid is None:
            broker.start(self.heap, self.detached)
            self._write_state()
        self._wait_until_ready([broker])

    def __enter__(self) -> "EmbeddedCluster":
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _refuse_a_foreign_cluster(self) -> None:
        """Raise if this cluster, which ends with this process, would take over another's."""
        foreign = [
            each.pid
            for each in self._brokers
            if each.process and each.process.handle is None and each.pid
        ]
        if foreign and not self.detached:
            raise InputError(
                f"cluster {self.name} in {self.directory} runs already (process {foreign[0]}): "
                "stop it with `mirrorlake local down` or use another folder"
            )

    def _quorum(self) -> list[Broker]:
        """The nodes that are controllers too: an odd number, so that one of three may die."""
        return self._brokers[: len(self._brokers) - (len(self._brokers) + 1) % 2][:3]

    def _end(self, brokers: Sequence[Broker], first: signal.Signals) -> None:
        processes = [broker.process for broker in brokers if broker.process is not None]
        for process in processes:
            process.signal(first)
        deadline = time.monotonic() + STOP_SECONDS
        for process in processes:
            if not process.wait(max(0.1, deadline - time.monotonic())):
                process.signal(signal.SIGKILL)
                process.wait(STOP_SECONDS)
        for broker in brokers:
            broker.process = None
        if self.directory.is_dir():
            self._write_state()

    def _wait_until_ready(self, started: Sequence[Broker]) -> None:
        """Wait until each of these brokers answers and knows all running ones."""
        deadline = time.monotonic() + READY_SECONDS
        quiet = {"log_level": 0, "error_cb": lambda _error: None, "reconnect.backoff.max.ms": 200}
        for broker in started:
            self._poll(partial(is_open, broker.port), deadline)
            admin = AdminClient({"bootstrap.servers": broker.address, **quiet})
            self._poll(partial(sees, admin, len(self.pids)), deadline)

    def _poll(self, ready: Callable[[], bool], deadline: float) -> None:
        for last in attempts(deadline - time.monotonic(), 0.05):
            if ready():
                return
            dead = [
                broker
                for broker in self._brokers
                if broker.process is not None and broker.pid is None
            ]
            if dead:
                raise ClusterUnreachable(
                    f"broker {dead[0].node} of cluster {self.name} ended while it started: see "
                    f"{dead[0].log_file} and stdout.log beside it",
                    alias=self.name,
                )
            if last:
                raise ClusterUnreachable(
                    f"cluster {self.name} was not ready after {READY_SECONDS:.0f} s: see "
                    f"{self._brokers[0].log_file}",
                    alias=self.name,
                )

    def _write_state(self) -> None:
        of_nodes = ("node", "port", "controller_port", "pid")
        nodes = [{name: getattr(each, name) for name in of_nodes} for each in self._brokers]
        names = ("name", "cluster_id", "heap", "properties", "version")
        state = {name: getattr(self, name) for name in names}
        fresh = self.directory / f".{STATE_FILE}"
        fresh.write_text(json.dumps({**state, "brokers": nodes}, indent=2) + "\n", encoding="utf-8")
        fresh.replace(self.directory / STATE_FILE)


def _brokers_of(
    directory: Path, count: int, ports: list[int] | None, known: dict[str, Any], version: str
) -> list[Broker]:
    """Return the brokers of a folder, from its state, with new ports for new ones."""
    nodes = known.get("brokers", [])
    if nodes and len(nodes) != count:
        raise InputError(
            f"the cluster in {directory} has {len(nodes)} brokers, not {count}: use another folder"
        )
    fresh: Iterator[int] = iter(free_ports(2 * max(0, count - len(nodes))))
    brokers = []
    for node in range(count):
        old = nodes[node] if nodes else {"port": next(fresh), "controller_port": next(fresh)}
        port = ports[node] if ports else old["port"]
        broker = Broker(node, port, old["controller_port"], directory / f"broker-{node}", version)
        if old.get("pid"):
            process = JvmProcess(old["pid"], str(broker.settings_file))
            broker.process = process if process.alive() else None
        brokers.append(broker)
    return brokers


def _read_state(directory: Path) -> dict[str, Any]:
    """The state that an earlier process wrote; empty if there is none."""
    try:
        state: dict[str, Any] = json.loads((directory / STATE_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return state


def sees(admin: AdminClient, brokers: int) -> bool:
    """Whether a cluster answers and knows at least so many brokers."""
    try:
        return len(admin.list_topics(timeout=2).brokers) >= brokers
    except KafkaException:
        return False
