"""Azure's blobs on this machine: Azurite (npm), where it is installed."""

import hmac
import os
import shutil
import subprocess
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from hashlib import sha256
from pathlib import Path

import pytest

from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.devtools.local.process import server
from mirrorlake.lake.place import Place, place_of
from tests.support.object_store import BUCKET, KEY, Store

#: Of Azurite's documentation, the same everywhere.
ACCOUNT = "devstoreaccount1"
SECRET = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#: The version of Azurite from which on names behind one are those alone.
LISTS_RIGHT = (3, 37, 0)


class AzureStore(Store):
    """A running server; a lake's options refer to its secret by `KEY`."""

    @property
    def options(self) -> dict[str, str]:
        """Those of `lake.storage`."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": f"${{env:{KEY}}}",
            "AZURE_STORAGE_ENDPOINT": f"{self.address}/{ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
        }

    def lake(self, name: str, **options: str) -> dict[str, object]:
        """See `ObjectStore.lake`."""
        return {"path": _url(name), "storage": {**self.options, **options}}

    def place(self, name: str) -> Place:
        """See `Store.place`."""
        return place_of(_url(name), {**self.options, "AZURE_STORAGE_ACCOUNT_KEY": SECRET})

    def make_container(self) -> None:
        """Make the one that lakes lie in, as Azure's REST interface has it."""
        now, version = formatdate(usegmt=True), "2021-08-06"
        place = f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
        said = "PUT" + 12 * "\n" + f"x-ms-date:{now}\nx-ms-version:{version}\n{place}"
        signed = hmac.new(b64decode(SECRET), said.encode(), sha256).digest()
        headers = {"x-ms-date": now, "x-ms-version": version}
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{b64encode(signed).decode()}"
        url = f"{self.address}/{ACCOUNT}/{BUCKET}?restype=container"
        urllib.request.urlopen(urllib.request.Request(url, None, headers, method="PUT")).close()


def _url(name: str) -> str:
    return f"abfss://{BUCKET}@{ACCOUNT}.dfs.core.windows.net/{name}"


@contextmanager
def azurite(folder: Path) -> Iterator[AzureStore]:
    """A server on a free port, with an empty container; skips where the program `azurite-blob` is
    neither on PATH nor named by MIRRORLAKE_AZURITE, or is one that names files which come before
    the one behind which it is asked for them: delta-rs does not see its own commits there."""
    program = os.environ.get("MIRRORLAKE_AZURITE") or shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite-blob (npm install azurite) is not on PATH")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    if tuple(int(part) for part in version.stdout.strip().split(".")) < LISTS_RIGHT:
        least = ".".join(map(str, LISTS_RIGHT))
        pytest.skip(f"{program} is {version.stdout.strip()}, and lists wrongly before {least}")
    (port,) = free_ports(1)
    command = [program, "--blobPort", str(port), "--location", str(folder), "--silent"]
    with server([*command, "--skipApiVersionCheck"], port, folder / "azurite.log"):
        store = AzureStore(f"http://127.0.0.1:{port}")
        store.make_container()
        yield store
