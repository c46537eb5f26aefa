"""Listeners that answer in the name of brokers that are gone."""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from tests.support.secure import Authority


def closes_behind_tls(folder: Path) -> Callable[[socket.socket], None]:
    """A load balancer that ends TLS with a good certificate, and has nobody behind it."""
    return _tls(folder, expired=False)


def out_of_date(folder: Path) -> Callable[[socket.socket], None]:
    """The same with a certificate that is out of date."""
    return _tls(folder, expired=True)


def garbage(_folder: Path) -> Callable[[socket.socket], None]:
    """Something that speaks neither TLS nor Kafka."""

    def answer(client: socket.socket) -> None:
        client.recv(4096)
        client.sendall(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")

    return answer


def closes(_folder: Path) -> Callable[[socket.socket], None]:
    """Something that takes what it is sent, and closes."""

    def answer(client: socket.socket) -> None:
        client.recv(4096)

    return answer


@contextmanager
def trap(answer: Callable[[socket.socket], None], port: int = 0) -> Iterator[str]:
    """A listener for the time of the block that does this to each client and closes; gives its
    address."""
    with socket.create_server(("127.0.0.1", port)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return  # the block is over
                with client:
                    client.settimeout(5)
                    try:
                        answer(client)
                    except OSError:
                        continue  # the client had enough

        Thread(target=serve, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)


def _tls(folder: Path, expired: bool) -> Callable[[socket.socket], None]:
    certificate, key = Authority(folder, "ca").sign("127.0.0.1", "trap", expired)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def answer(client: socket.socket) -> None:
        context.wrap_socket(client, server_side=True).close()

    return answer
