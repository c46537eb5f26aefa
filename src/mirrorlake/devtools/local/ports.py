"""Chooses ports for local brokers that stay theirs while a broker is down."""

import random
import socket
import threading
from contextlib import ExitStack

from mirrorlake.errors import InputError

# Below the range for outgoing connections (Linux from 32768, macOS from 49152): a client that
# retries the port of a stopped broker could otherwise get that very port and connect to itself.
_LOWEST, _HIGHEST = 15000, 32767
_TRIES = 2000

_given: set[int] = set()
_lock = threading.Lock()


def free_ports(count: int) -> list[int]:
    """`count` ports of 127.0.0.1 that no process listens on and this process never gave before."""
    ports: list[int] = []
    with _lock, ExitStack() as sockets:
        for _ in range(_TRIES):
            if len(ports) == count:
                break
            port = random.randint(_LOWEST, _HIGHEST)
            if port not in _given and _bound(port, sockets):
                ports.append(port)
                _given.add(port)
    if len(ports) < count:
        raise InputError(
            f"found no {count} free ports of 127.0.0.1 between {_LOWEST} and {_HIGHEST}"
        )
    return ports


def is_free(port: int) -> bool:
    """Return whether a server could listen on this port of 127.0.0.1 now."""
    with ExitStack() as sockets:
        return _bound(port, sockets)


def is_open(port: int) -> bool:
    """Return whether a server listens on this port of 127.0.0.1."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0


def _bound(port: int, sockets: ExitStack) -> bool:
    server = sockets.enter_context(socket.socket())
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
