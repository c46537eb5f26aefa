"""A link of ours in front of an object store: it counts requests by what they do, and lets the
store misbehave as a test says."""

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

#: What a store of a fault does with a request: refuses it for now, says nothing, is slow to do it,
#: does it and loses the answer, or half of it, or finds that its credentials are no longer good.
Fault = Literal["503", "silent", "slow", "torn", "half", "expired"]
_REFUSED = {"503": (503, "SlowDown"), "expired": (400, "ExpiredToken")}
SLOW_SECONDS = 2.0
#: How long nothing is said: longer than an impatient client waits.
SILENT_SECONDS = 4.0
_OF_LINK = ("connection", "transfer-encoding", "keep-alive")


class Request(NamedTuple):
    """What was asked of the store. `kind` is LIST for a GET of names; `key` is the object's, or the
    prefix; `access_key` is whose credentials it bears."""

    kind: str
    key: str
    access_key: str = ""


class StoreLink:
    """Takes requests on a port and hands them on to a server behind it, both on loopback.

    Attributes:
        requests: all that came, in order.
        fault: what goes wrong with a request, if anything does; asked for each.
        met: how many requests something went wrong with.
        silent_seconds: how long one is silent.
        slow_seconds: how long a slow one takes longer.
        conditional: whether a put may ask that the object is not there; else it is made anyway.
    """

    def __init__(self, behind: str) -> None:
        self.requests: list[Request] = []
        self.fault: Callable[[Request], Fault | None] = lambda _request: None
        self.met = 0
        self.silent_seconds = SILENT_SECONDS
        self.slow_seconds = SLOW_SECONDS
        self.conditional = True
        self.behind = urlsplit(behind).netloc
        self.closed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def counted(self, since: int = 0) -> Counter[str]:
        """How many requests of each kind came behind the first `since`."""
        return Counter(request.kind for request in self.requests[since:])

    def close(self) -> None:
        """Take no more requests."""
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def link_to(address: str) -> Iterator[StoreLink]:
    """A link to a store for the time of the block."""
    link = StoreLink(address)
    try:
        yield link
    finally:
        link.close()


def _request_of(method: str, target: str, authorization: str) -> Request:
    parts = urlsplit(target)
    query = parse_qs(parts.query)
    named = authorization.partition("Credential=")[2].partition("/")[0]
    if method == "GET" and ("list-type" in query or "prefix" in query):
        return Request("LIST", query.get("prefix", [""])[0], named)
    return Request(method, unquote(parts.path).partition("/")[2].partition("/")[2], named)


def _handler_of(link: StoreLink) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer goes as a whole: a body behind its head waits 40 ms for an ACK

        def setup(self) -> None:
            super().setup()
            self._behind = http.client.HTTPConnection(link.behind, timeout=60)

        def finish(self) -> None:
            self._behind.close()
            with suppress(OSError):
                super().finish()

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = _request_of(self.command, self.path, self.headers.get("Authorization") or "")
            link.requests.append(request)
            fault = link.fault(request)
            link.met += fault is not None
            if fault in _REFUSED:
                status, code = _REFUSED[fault]
                text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
                self._answer(status, {"Content-Type": "application/xml"}, text)
                return
            if fault == "silent":
                link.closed.wait(link.silent_seconds)
                self.close_connection = True
                return
            if fault == "slow":
                link.closed.wait(link.slow_seconds)
            status, headers, text = self._asked(body)
            if fault == "torn":
                self.close_connection = True
                return
            self.close_connection = fault == "half"
            self._answer(status, headers, text, len(text) // 2 if fault == "half" else len(text))

        def _asked(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            given = {
                name: value for name, value in self.headers.items() if name.lower() not in _OF_LINK
            }
            if not link.conditional:
                given = {name: v for name, v in given.items() if name.lower() != "if-none-match"}
            self._behind.request(self.command, self.path, body, given)
            answer = self._behind.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

        def _answer(
            self, status: int, headers: dict[str, str], text: bytes, said: int | None = None
        ) -> None:
            length = headers.get("Content-Length") if self.command == "HEAD" else None
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in (*_OF_LINK, "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length or str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text[:said])

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _serve

    return Handler
