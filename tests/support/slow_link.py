"""A broker behind links of ours: so many bytes a second, cut when a test says so; one of them asks
for a password."""

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mirrorlake.devtools.local.cluster import EmbeddedCluster
from mirrorlake.devtools.local.ports import free_ports

USER = "mirror"
_CHUNK = 16 << 10


#: Kafka's numbers of requests.
FETCH, LIST_OFFSETS, METADATA = 1, 2, 3


class Requests:
    """The requests of one connection, by their kind, in its bytes as they come."""

    def __init__(self, counts: Counter[int]) -> None:
        self._counts = counts
        self._known = b""
        self._left = 0

    def take(self, data: bytes) -> None:
        """Count the requests that begin in these bytes: a size of four bytes, then the kind of
        two."""
        while data:
            skipped = min(self._left, len(data))
            self._left, data = self._left - skipped, data[skipped:]
            wanted = 6 - len(self._known)
            self._known, data = self._known + data[:wanted], data[wanted:]
            if len(self._known) == 6:
                self._counts[int.from_bytes(self._known[4:])] += 1
                self._left, self._known = int.from_bytes(self._known[:4]) - 2, b""


class Link:
    """Takes connections on a port and hands them on to another one, both on loopback. What the
    broker sends shares `bytes_per_second`, None for as much as there is; `passed` counts it, and
    `requests` what it is asked, by Kafka's numbers."""

    def __init__(self, behind: int) -> None:
        self._bytes_per_second: int | None = None
        self._changed = threading.Event()
        self.passed = 0
        self.requests: Counter[int] = Counter()
        self.behind = behind
        self._turn = threading.Lock()
        self._free_at = 0.0
        self._open: set[socket.socket] = set()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bytes_per_second(self) -> int | None:
        """How much passes; what waits for an earlier pace passes at once when it is set."""
        return self._bytes_per_second

    @bytes_per_second.setter
    def bytes_per_second(self, pace: int | None) -> None:
        self._bytes_per_second, self._free_at = pace, 0.0
        self._changed.set()

    def cut(self) -> None:
        """End all connections."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Take no more connections, and end all."""
        self._server.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            broker = socket.socket()
            # else much of it waits in the kernel
            broker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * _CHUNK)
            try:
                broker.connect(("127.0.0.1", self.behind))
            except OSError:
                client.close()
                continue
            self._open |= {client, broker}
            for source, sink, limited in ((client, broker, False), (broker, client, True)):
                threading.Thread(
                    target=self._pump, args=(source, sink, limited), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, limited: bool) -> None:
        requests = Requests(self.requests)
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if limited:
                    self._pass(len(data))
                else:
                    requests.take(data)
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            self._open.discard(each)

    def _pass(self, size: int) -> None:
        """Wait until the link has come to the end of so many bytes."""
        with self._turn:
            self.passed += size
            self._changed.clear()
            if (pace := self._bytes_per_second) is None:
                return
            self._free_at = max(self._free_at, time.monotonic()) + size / pace
            self._changed.wait(max(0.0, self._free_at - time.monotonic()))


@dataclass
class LinkedCluster:
    """One broker: `cluster.bootstrap_servers` is the short way to it, `open` and `guarded` are
    links."""

    cluster: EmbeddedCluster
    open: Link
    guarded: Link

    def set_password(self, password: str) -> None:
        """Let USER in through the guarded link with this password, and no other."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        change = UserScramCredentialUpsertion(USER, info, password.encode())
        admin.alter_user_scram_credentials([change])[USER].result(30)

    def login(self, password: str) -> dict[str, str]:
        """A client's settings for the guarded link."""
        return {
            "bootstrap.servers": self.guarded.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": USER,
            "sasl.password": password,
        }


@contextmanager
def linked_cluster(folder: Path) -> Iterator[LinkedCluster]:
    """The cluster and its links for the time of the block."""
    ports = free_ports(2)
    links = [Link(port) for port in ports]
    jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    properties = {
        "listeners": f"OPEN://127.0.0.1:{ports[0]},GUARDED://127.0.0.1:{ports[1]}",
        "advertised.listeners": f"OPEN://{links[0].address},GUARDED://{links[1].address}",
        "listener.security.protocol.map": "OPEN:PLAINTEXT,GUARDED:SASL_PLAINTEXT",
        "listener.name.guarded.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.guarded.scram-sha-256.sasl.jaas.config": jaas,
    }
    try:
        with EmbeddedCluster("linked", folder, properties=properties) as cluster:
            yield LinkedCluster(cluster, *links)
    finally:
        for link in links:
            link.close()
