"""Serves the page on a local port, for browsers on this machine."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mirrorlake.dashboard.data import to_json
from mirrorlake.errors import InputError, MirrorlakeError

ADDRESS = "127.0.0.1"

logger = logging.getLogger(__name__)


class DashboardServer(ThreadingHTTPServer):
    """Serves the page at / and the newest rows at /data.json; only GET and HEAD."""

    # the end waits for a read in flight: the interpreter must not shut down under it
    daemon_threads = False

    def __init__(self, page: str, newest: Callable[[], bytes], port: int) -> None:
        """Listen; port 0 takes a free one. `page` may be replaced later. Raises InputError when the
        port is taken."""
        self.page = page.encode()
        self.newest = newest
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise InputError(
                f"the dashboard cannot listen on {ADDRESS}:{port} ({error.strerror}); choose "
                "another --port"
            ) from error

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://{ADDRESS}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: DashboardServer
    server_version, sys_version = "mirrorlake", ""

    def do_GET(self) -> None:
        """Answer."""
        self._answer(*self._response())

    do_HEAD = do_GET

    def _response(self) -> tuple[HTTPStatus, str, bytes]:
        port = self.server.server_port
        # DNS rebinding: a foreign page whose name resolves to this machine still sends that name.
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            return HTTPStatus.FORBIDDEN, "text/plain", b"this page is only for this machine\n"
        if self.path == "/":
            return HTTPStatus.OK, "text/html", self.server.page
        if self.path != "/data.json":
            return HTTPStatus.NOT_FOUND, "text/plain", b"there is / and /data.json\n"
        try:
            return HTTPStatus.OK, "application/json", self.server.newest()
        except MirrorlakeError as error:
            logger.warning("%s", error)
            answer = to_json({"error": str(error)})
            return HTTPStatus.SERVICE_UNAVAILABLE, "application/json", answer

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log requests with our logger."""
        logger.debug(format, *args)
