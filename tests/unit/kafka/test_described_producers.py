"""Asking brokers by the bytes of the protocol: DescribeProducers (KIP-664), and the logins in front
of it."""

import base64
import socket
import struct
import threading
from collections.abc import Callable

import pytest

from mirrorlake.kafka.transactions import OpenTransaction, oldest, request
from mirrorlake.kafka.wire import BrokerConnection, Scram, WireUnsupported

#: Producer 4711 is open from offset 7, 12 from 3; 13 has nothing open. By the schema of Kafka's
#: DescribeProducersResponse.
_PRODUCERS = b"".join(
    struct.pack(">qiiqiq", producer, 0, 9, written, 0, first) + b"\0"
    for producer, written, first in ((4711, 500, 7), (12, 400, 3), (13, 600, -1))
)
ANSWER = (
    struct.pack(">i", 0)
    + b"\2" + b"\7orders"
    + b"\3" + struct.pack(">ih", 0, 0) + b"\0" + b"\4" + _PRODUCERS + b"\0"
    + struct.pack(">ih", 1, 29) + b"\5none" + b"\1" + b"\0"
    + b"\0" + b"\0"
)  # fmt: skip


def test_the_oldest_open_transaction_of_each_partition_is_read() -> None:
    assert oldest(ANSWER) == {("orders", 0): OpenTransaction(12, 3, 400)}


def test_partitions_are_asked_by_topic() -> None:
    asked = request([("orders", 1), ("a", 0), ("orders", 0)])
    assert (
        asked
        == b"\3"
        + b"\2a\2"
        + struct.pack(">i", 0)
        + b"\0"
        + b"\7orders\3"
        + struct.pack(">ii", 0, 1)
        + b"\0\0"
    )
    long = "t" * 249
    assert request([(long, 0)]).startswith(b"\2\xfa\x01" + long.encode())


def test_scram_is_that_of_rfc_7677() -> None:
    scram = Scram("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    answer = f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert scram.final(answer) == f"c=biws,r={nonce},p={proof}".encode()
    assert scram.is_answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert not scram.is_answer(b"v=" + base64.b64encode(b"another broker"))
    with pytest.raises(WireUnsupported):
        scram.final(b"r=another,s=,i=1")


def broker(answers: list[bytes]) -> tuple[int, list[bytes], Callable[[], None]]:
    """A broker that answers one connection; returns its port, what it was asked, and how to wait
    for its end."""
    server = socket.create_server(("127.0.0.1", 0))
    asked: list[bytes] = []

    def serve() -> None:
        with server, server.accept()[0] as connection:
            stream = connection.makefile("rb")
            for answer in answers:
                (size,) = struct.unpack(">i", stream.read(4))
                asked.append(stream.read(size))
                document = asked[-1][4:8] + answer
                connection.sendall(struct.pack(">i", len(document)) + document)

    thread = threading.Thread(target=serve)
    thread.start()
    return server.getsockname()[1], asked, thread.join


def test_a_login_by_plain_goes_before_the_question() -> None:
    port, asked, end = broker(
        [b"\0\0" + struct.pack(">i", 0), b"\0\0\xff\xff" + struct.pack(">i", 0), b"\0" + ANSWER]
    )
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    login = {"sasl.username": "me", "sasl.password": "secret"}
    with BrokerConnection("127.0.0.1", port, {**settings, **login}, 5) as connection:
        assert oldest(connection.ask(61, 0, request([("orders", 0)]), flexible=True))
    end()
    assert asked[0].endswith(b"\0\5PLAIN") and asked[1].endswith(b"\0me\0secret")


@pytest.mark.parametrize(
    "settings",
    [
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"},
        {"security.protocol": "SASL_PLAINTEXT"},
        {"security.protocol": "SSL", "ssl.certificate.pem": "…"},
    ],
)
def test_what_is_not_spoken_is_said_and_nothing_stays_open(settings: dict[str, str]) -> None:
    port, asked, end = broker([])
    with pytest.raises(WireUnsupported):
        BrokerConnection("127.0.0.1", port, settings, 5)
    end()
    assert asked == []
