"""Client quotas of a cluster: confluent-kafka's AdminClient has no call for them, so the request is
spoken here."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

#: AlterClientQuotas (KIP-546), in its first version.
_API_KEY, _VERSION = 49, 0


@contextmanager
def produce_quota(bootstrap: str, client_id: str, bytes_per_second: float) -> Iterator[None]:
    """Let a broker take so much from producers of one `client.id`, each second, for the time of the
    block."""
    _alter(bootstrap, client_id, bytes_per_second)
    try:
        yield
    finally:
        _alter(bootstrap, client_id, None)


def _alter(bootstrap: str, client_id: str, rate: float | None) -> None:
    """Set the quota, or remove it."""
    entity = struct.pack(">i", 1) + _string("client-id") + _string(client_id)
    change = (
        struct.pack(">i", 1)
        + _string("producer_byte_rate")
        + struct.pack(">d?", rate or 0.0, rate is None)
    )
    body = struct.pack(">i", 1) + entity + change + struct.pack(">?", False)
    request = struct.pack(">hhi", _API_KEY, _VERSION, 1) + _string("tests") + body
    host, port = bootstrap.split(",")[0].rsplit(":", 1)
    with (
        socket.create_connection((host, int(port)), timeout=30) as connection,
        connection.makefile("rb") as answers,
    ):
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    _correlation, _throttle, count, error = struct.unpack_from(">iiih", answer)
    assert (count, error) == (1, 0), answer


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
