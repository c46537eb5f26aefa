"""How many bytes have come to a client, of whole answers or not, by the kernel's count.

librdkafka counts an answer once it is whole, and a single record may be so large that a slow link
takes minutes for it. Nor does librdkafka show its connections: a client that is given a size of its
own for what it sends (`socket.send.buffer.bytes`) is known by it, since the kernel keeps the double
of it with each connection (socket(7)). Only Linux counts so (TCP_INFO, tcp(7)): elsewhere nothing
is known.
"""

import itertools
import os
import socket
import stat
import struct
from contextlib import suppress

#: The sizes that clients are given, bytes: enough for any request of a reader, and less than what
#: the kernel allows without being set up for more.
_LEAST_SIZE, _SIZES = 64 << 10, 32 << 10
_FOLDER = "/proc/self/fd"
_turn = itertools.count()
#: `tcpi_bytes_received` of Linux's `struct tcp_info` (linux/tcp.h), from 4.1 on.
_BYTES_RECEIVED = struct.Struct("128xQ")


def own_send_size() -> int:
    """A size, in bytes, that no other client of this process is given soon."""
    return _LEAST_SIZE + next(_turn) % _SIZES


def bytes_received(send_size: int) -> dict[int, int]:
    """What has come, by the local port of each connection whose client was given that size; empty
    where that is not known."""
    received: dict[int, int] = {}
    numbers = os.listdir(_FOLDER) if os.path.isdir(_FOLDER) else ()
    for number in map(int, numbers):
        with suppress(OSError):  # another thread may close it meanwhile
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                with socket.socket(fileno=os.dup(number)) as connection:
                    received |= _received_by(connection, send_size)
    return received


def _received_by(connection: socket.socket, send_size: int) -> dict[int, int]:
    """The same of one connection. Raises OSError where it is none of TCP."""
    if connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) != 2 * send_size:
        return {}
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_RECEIVED.size)
    if len(info) < _BYTES_RECEIVED.size:
        return {}
    (count,) = _BYTES_RECEIVED.unpack(info)
    return {connection.getsockname()[1]: count}
