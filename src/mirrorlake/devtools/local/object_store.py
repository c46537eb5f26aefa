"""A local S3 for development and measurements: moto's server, and an empty bucket."""

import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.devtools.local.process import server
from mirrorlake.errors import InputError

BUCKET = "lakes"
#: The variables that `ObjectStore.options` refers to, for processes that open a lake there.
ENVIRONMENT: Mapping[str, str] = {"MIRRORLAKE_LOCAL_SECRET": "secret"}


@dataclass(frozen=True)
class ObjectStore:
    """A running server, by its address. `options` are those of `lake.storage`."""

    address: str

    @property
    def options(self) -> dict[str, str]:
        """delta-rs' options to reach it; the secret is in ENVIRONMENT."""
        (key,) = ENVIRONMENT
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": f"${{env:{key}}}",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def lake(self, name: str, **options: str) -> dict[str, object]:
        """The topology file's `lake` block for a lake in this store, with additional options."""
        return {"path": f"s3://{BUCKET}/{name}", "storage": {**self.options, **options}}


@contextmanager
def object_store(folder: Path) -> Iterator[ObjectStore]:
    """Run a server while the block runs, with its log in `folder`. Raises InputError if moto is not
    installed, or its server does not start."""
    if find_spec("moto") is None:
        raise InputError(
            "an object store on this machine needs moto: pip install 'moto[s3,server]'"
        )
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    with server(command, port, folder / "moto.log"):
        store = ObjectStore(f"http://127.0.0.1:{port}")
        request = urllib.request.Request(f"{store.address}/{BUCKET}", method="PUT")
        urllib.request.urlopen(request).close()
        yield store
