"""A server of HTTP on loopback, for what a test lets a program ask: one function answers all."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class HttpRequest(NamedTuple):
    """What came; `path` has its query, and names of headers are found in any case."""

    method: str
    path: str
    headers: Message
    body: bytes


class HttpAnswer(NamedTuple):
    """What is answered."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


def json_answer(status: int, document: object) -> HttpAnswer:
    """A document in JSON."""
    return HttpAnswer(status, json.dumps(document).encode(), {"Content-Type": "application/json"})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    #: Some clients open many connections at once, and open again what is refused.
    request_queue_size = 128


@contextmanager
def http_server(answer: Callable[[HttpRequest], HttpAnswer]) -> Iterator[str]:
    """Answer by a function, which is called in a thread for each connection, for the time of the
    block. Yields the address, without a slash at its end."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # as of the link to a store (store_link.py)

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, text, headers = answer(HttpRequest(self.command, self.path, self.headers, body))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
