"""Queries one broker in the bytes of Kafka's protocol, for requests that librdkafka does not offer.

It connects like the cluster's clients: in plain text, by TLS, and with a login by PLAIN or SCRAM.
Kerberos, tokens and client certificates are not supported (`WireUnsupported`): these answers are
informative, and nothing depends on them.
"""

import base64
import hashlib
import hmac
import os
import socket
import ssl
import struct
from contextlib import AbstractContextManager

from mirrorlake.kafka.client_settings import Settings

_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
#: The largest answer that is read, bytes: a peer that is not a broker may announce any size.
_LARGEST = 64 << 20


class WireUnsupported(Exception):
    """A broker cannot be asked this way; the text says why."""


class BrokerConnection(AbstractContextManager["BrokerConnection"]):
    """A connection to one broker, for one thread, by settings of librdkafka; each answer may take
    so many seconds. Raises OSError, and WireUnsupported."""

    def __init__(self, host: str, port: int, settings: Settings, seconds: float) -> None:
        protocol = str(settings.get("security.protocol", "plaintext")).upper()
        self._client = str(settings.get("client.id", "mirrorlake"))
        self._sent = 0
        self._socket = socket.create_connection((host, port), seconds)
        try:
            if protocol.endswith("SSL"):
                self._socket = _context(settings).wrap_socket(self._socket, server_hostname=host)
            if protocol.startswith("SASL"):
                self._log_in(settings)
        except BaseException:
            self._socket.close()
            raise

    def __exit__(self, *_error: object) -> None:
        self._socket.close()

    def ask(self, key: int, version: int, body: bytes, flexible: bool = False) -> bytes:
        """Send a request; return the answer without header. `flexible`: with KIP-482's header."""
        self._sent += 1
        client = self._client.encode()
        header = struct.pack(">hhih", key, version, self._sent, len(client)) + client
        request = header + (b"\0" if flexible else b"") + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", self._read(4))
        if not 4 <= size <= _LARGEST:
            raise WireUnsupported(f"an answer of {size} bytes")
        answer = self._read(size)
        return answer[5:] if flexible else answer[4:]

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(min(size - len(parts), 1 << 16))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)

    def _log_in(self, settings: Settings) -> None:
        mechanism = str(settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "")
        name, password = (str(settings.get(f"sasl.{key}", "")) for key in ("username", "password"))
        if mechanism != "PLAIN" and mechanism not in _DIGESTS:
            raise WireUnsupported(f"the login {mechanism or 'by Kerberos'}")
        text = mechanism.encode()
        answer = self.ask(_SASL_HANDSHAKE, 1, struct.pack(">h", len(text)) + text)
        if answer[:2] != b"\0\0":
            raise WireUnsupported(f"the broker does not take the login {mechanism}")
        if mechanism == "PLAIN":
            self._prove(f"\0{name}\0{password}".encode())
            return
        scram = Scram(
            _DIGESTS[mechanism], name, password, base64.b64encode(os.urandom(18)).decode()
        )
        final = scram.final(self._prove(scram.first()))
        if not scram.is_answer(self._prove(final)):
            raise WireUnsupported("the broker does not know the password that it checks")

    def _prove(self, token: bytes) -> bytes:
        answer = self.ask(_SASL_AUTHENTICATE, 0, struct.pack(">i", len(token)) + token)
        if answer[:2] != b"\0\0":
            raise WireUnsupported("the broker refused the login")
        (length,) = struct.unpack_from(">h", answer, 2)
        at = 4 + max(0, length)
        (size,) = struct.unpack_from(">i", answer, at)
        return answer[at + 4 : at + 4 + max(0, size)]


class Scram:
    """The client's side of SCRAM (RFC 5802, RFC 7677), without channel binding, as Kafka has it."""

    def __init__(self, digest: str, name: str, password: str, nonce: str) -> None:
        self._digest = digest
        self._password = password.encode()
        self._nonce = nonce
        self._bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._signed = b""
        self._salted = b""

    def first(self) -> bytes:
        """The client's first message."""
        return f"n,,{self._bare}".encode()

    def final(self, first_answer: bytes) -> bytes:
        """The client's proof, by the server's first one. Raises WireUnsupported for another's."""
        facts = _facts(first_answer)
        if not facts.get("r", "").startswith(self._nonce) or not facts.get("i", "").isdigit():
            raise WireUnsupported("the broker's answer to the login is not of this login")
        salt, rounds = base64.b64decode(facts["s"]), int(facts["i"])
        self._salted = hashlib.pbkdf2_hmac(self._digest, self._password, salt, rounds)
        without = f"c=biws,r={facts['r']}"
        self._signed = f"{self._bare},{first_answer.decode()},{without}".encode()
        key = self._mac(self._salted, b"Client Key")
        signature = self._mac(hashlib.new(self._digest, key).digest(), self._signed)
        proof = bytes(left ^ right for left, right in zip(key, signature, strict=True))
        return f"{without},p={base64.b64encode(proof).decode()}".encode()

    def is_answer(self, final_answer: bytes) -> bool:
        """Whether the server's last message proves that it knows the password too."""
        wanted = self._mac(self._mac(self._salted, b"Server Key"), self._signed)
        return hmac.compare_digest(
            base64.b64encode(wanted).decode(), _facts(final_answer).get("v", "")
        )

    def _mac(self, key: bytes, text: bytes) -> bytes:
        return hmac.new(key, text, self._digest).digest()


def _facts(message: bytes) -> dict[str, str]:
    return dict(part.split("=", 1) for part in message.decode().split(",") if "=" in part)


def _context(settings: Settings) -> ssl.SSLContext:
    if "ssl.certificate.pem" in settings or "ssl.certificate.location" in settings:
        raise WireUnsupported("a login by client certificate")
    ca, file = settings.get("ssl.ca.pem"), settings.get("ssl.ca.location")
    context = ssl.create_default_context(
        cadata=str(ca) if ca else None, cafile=str(file) if file else None
    )
    if settings.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    return context
