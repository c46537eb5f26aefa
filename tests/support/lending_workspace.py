"""As much of a workspace as lends credentials for a path, on loopback."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any]]


class Workspace(ThreadingHTTPServer):
    """Lends.

    Attributes:
        key: the access key of S3 that is lent now.
        seconds: for how long it is good.
        answers: what is answered instead, one after the other.
        asked: the paths and bodies of what was asked.
    """

    daemon_threads = True

    def __init__(self) -> None:
        self.key, self.seconds = "first", 3_600.0
        self.answers: list[Answer] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        super().__init__(("127.0.0.1", 0), _handler_of(self))

    @property
    def environment(self) -> dict[str, str]:
        """By which Databricks' SDK reaches it."""
        host = f"http://127.0.0.1:{self.server_port}"
        return {"DATABRICKS_HOST": host, "DATABRICKS_TOKEN": "of-the-job"}

    def answer(self) -> Answer:
        """What the next one who asks hears."""
        if self.answers:
            return self.answers.pop(0)
        aws = {"access_key_id": self.key, "secret_access_key": "secret", "session_token": "token"}
        until = int((time.time() + self.seconds) * 1_000)
        return 200, {"aws_temp_credentials": aws, "expiration_time": until}


@contextmanager
def lending_workspace() -> Iterator[Workspace]:
    """One for the time of the block."""
    workspace = Workspace()
    thread = threading.Thread(target=workspace.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield workspace
    finally:
        workspace.shutdown()
        workspace.server_close()
        thread.join()


def _handler_of(workspace: Workspace) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(404, {})  # what else the SDK wants to know of a host

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            workspace.asked.append((self.path, json.loads(body)))
            self._answer(*workspace.answer())

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: object) -> None:
            pass

    return Handler
