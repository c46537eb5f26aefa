"""S3 on this machine: moto's server, a bucket, and how a topology file names it."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket

import yaml

from mirrorlake.lake.place import Place, place_of
from tests.support.waiting import until

BUCKET = "lakes"
#: What `Store.options` refer to, for the environment of who opens a lake there.
KEY, SECRET = "MIRRORLAKE_TEST_KEY", "secret"


@dataclass(frozen=True)
class Store:
    """A running server, or a link to one. `options` are those of `lake.storage`."""

    address: str

    @property
    def options(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": f"${{env:{KEY}}}",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def hold(self, topology: Path, name: str, **options: str) -> str:
        """Let the lake of a topology file lie here, with more options. Returns its URL."""
        document = yaml.safe_load(topology.read_text(encoding="utf-8"))
        url = f"s3://{BUCKET}/{name}"
        document["lake"] = {"path": url, "storage": {**self.options, **options}}
        topology.write_text(yaml.safe_dump(document), encoding="utf-8")
        return url

    def place(self, name: str) -> Place:
        """Where a lake of a name is, for a process that has resolved the options."""
        options = {**self.options, "AWS_SECRET_ACCESS_KEY": SECRET}
        return place_of(f"s3://{BUCKET}/{name}", options)


@contextmanager
def moto_server(folder: Path) -> Iterator[Store]:
    """A server on a free port, with an empty bucket."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (folder / "moto.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-p", str(port)], stdout=log, stderr=log
        )
        try:
            store = Store(f"http://127.0.0.1:{port}")
            until(lambda: _answers(store), "moto's server answers")
            request = urllib.request.Request(f"{store.address}/{BUCKET}", method="PUT")
            urllib.request.urlopen(request).close()
            yield store
        finally:
            process.terminate()
            process.wait(30)


def _answers(store: Store) -> bool:
    try:
        urllib.request.urlopen(store.address, timeout=5).close()
    except OSError:
        return False
    return True
