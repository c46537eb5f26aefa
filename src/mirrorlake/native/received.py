"""How many bytes have arrived at a client, of whole answers or not, by the kernel's count.

librdkafka counts only whole answers, and a single record may be so large that a slow link takes
minutes for it. Nor does it expose its connections: a client with its own size of the send buffer
(`socket.send.buffer.bytes`) is recognized by that, since the kernel keeps the double of it for each
connection (socket(7)). Only Linux counts these bytes (TCP_INFO, tcp(7)): elsewhere nothing is
known.
"""

import itertools
import os
import socket
import stat
import struct
from contextlib import suppress

#: Clients' send buffer sizes, bytes: enough for a reader's requests, below the kernel's limit.
_LEAST_SIZE, _SIZES = 64 << 10, 32 << 10
_FOLDER = "/proc/self/fd"
_turn = itertools.count()
#: `tcpi_bytes_received` of Linux's `struct tcp_info` (linux/tcp.h), from 4.1 on.
_BYTES_RECEIVED = struct.Struct("128xQ")


def own_send_size() -> int:
    """A size, in bytes, that no other client of this process is given soon."""
    return _LEAST_SIZE + next(_turn) % _SIZES


def bytes_received(send_size: int) -> dict[int, int]:
    """The bytes received, by local port of each of the client's connections; empty if unknown."""
    received: dict[int, int] = {}
    numbers = os.listdir(_FOLDER) if os.path.isdir(_FOLDER) else ()
    for number in map(int, numbers):
        with suppress(OSError):  # another thread may close it meanwhile
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as connection:
                    received |= _received_by(connection, send_size)
    return received


def _received_by(connection: socket.socket, send_size: int) -> dict[int, int]:
    """The same for one connection. Raises OSError if it is not of TCP."""
    if connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) != 2 * send_size:
        return {}
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED.size)
    if len(info) < _BYTES_RECEIVED.size:
        return {}
    (count,) = _BYTES_RECEIVED.unpack(info)
    return {connection.getsockname()[1]: count}
