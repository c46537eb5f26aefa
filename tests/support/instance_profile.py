"""What an instance of EC2 asks for its credentials, on loopback: they are renewed before they
expire, and both delta-rs and obstore ask by themselves."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class InstanceProfile:
    """Gives the credentials of one role.

    Attributes:
        key: the access key that is given now.
        seconds: for how long it is said to be good; clients renew in the last five minutes.
    """

    def __init__(self, key: str, seconds: float) -> None:
        self.key, self.seconds = key, seconds
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def document(self) -> str:
        """What is said of the credentials."""
        until = datetime.now(timezone.utc) + timedelta(seconds=self.seconds)
        return json.dumps(
            {
                "Code": "Success",
                "Type": "AWS-HMAC",
                "LastUpdated": "2026-01-01T00:00:00Z",
                "AccessKeyId": self.key,
                "SecretAccessKey": "secret",
                "Token": "token",
                "Expiration": f"{until:%Y-%m-%dT%H:%M:%SZ}",
            }
        )

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def instance_profile(key: str, seconds: float) -> Iterator[InstanceProfile]:
    """One for the time of the block."""
    profile = InstanceProfile(key, seconds)
    try:
        yield profile
    finally:
        profile.close()


def _handler_of(profile: InstanceProfile) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_PUT(self) -> None:
            self._answer("session", {"x-aws-ec2-metadata-token-ttl-seconds": "21600"})

        def do_GET(self) -> None:
            names = self.path.rstrip("/").endswith("security-credentials")
            self._answer("role" if names else profile.document(), {})

        def _answer(self, text: str, headers: dict[str, str]) -> None:
            self.send_response(200)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

    return Handler
