"""`ops/Dockerfile`, built and run by buildah, which needs no daemon.

No registry of images is asked: the base is made here, of Debian's packages by debootstrap, with the
Python that runs the tests. So what the Dockerfile does is tried, and not the base that it names.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.replication import write_topology

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "ops" / "Dockerfile"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not (shutil.which("buildah") and shutil.which("debootstrap")),
        reason="an image without a daemon takes root, buildah and debootstrap",
    ),
]
#: What this Python is linked to, beyond what Debian cannot do without.
LIBRARIES = "ca-certificates,libssl3,libffi8,libsqlite3-0,libbz2-1.0,libreadline8,libexpat1"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


class Buildah:
    """buildah with a store of its own."""

    def __init__(self, place: Path) -> None:
        self._own = ["--root", str(place / "store"), "--runroot", str(place / "run")]

    def __call__(self, *words: str) -> str:
        """What it says. Fails where it does."""
        done = subprocess.run(
            ["buildah", *self._own, "--storage-driver", "vfs", *words],
            capture_output=True,
            text=True,
            env={**os.environ, "BUILDAH_ISOLATION": "chroot"},
            check=False,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout[-3_000:]}\n{done.stderr[-3_000:]}"
        return done.stdout.strip()


def make_base(root: Path) -> None:
    """A file system like that of the image that the Dockerfile begins with: Debian, and Python with
    pip below /usr/local. Certificates are this machine's."""
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={LIBRARIES}", "bookworm", str(root)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    python, home = f"python3.{sys.version_info.minor}", Path(sys.base_prefix)
    local = root / "usr" / "local"
    for name in ("bin", "include", "lib"):
        shutil.copytree(
            home / name,
            local / name,
            symlinks=True,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("site-packages", "__pycache__", "*.a", "test"),
        )
    (local / "lib" / python / "site-packages").mkdir()
    shutil.copy(f"/{CERTIFICATES}", root / CERTIFICATES)
    (root / "etc" / "pip.conf").write_text(f"[global]\ncert = /{CERTIFICATES}\n", encoding="utf-8")
    script = f"ldconfig && {python} -m ensurepip && ln -sf pip3 /usr/local/bin/pip"
    subprocess.run(["chroot", str(root), "sh", "-c", script], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def image(place: Path) -> Buildah:
    """The store with the image, named `mirrorlake`."""
    buildah = Buildah(place)
    make_base(place / "base")
    (name,) = set(re.findall(r"^FROM (\S+)", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE))
    base = buildah("from", "scratch")
    buildah("add", "--quiet", base, str(place / "base"), "/")
    path = "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"
    buildah("config", "--env", f"PATH={path}", base)
    buildah("commit", "--quiet", "--rm", base, f"docker.io/library/{name}")
    shutil.rmtree(place / "base")
    build = ["--pull-never", "--network", "host", "--file", str(DOCKERFILE)]
    buildah("bud", *build, "--tag", "localhost/mirrorlake", str(ROOT))
    return buildah


def test_it_replicates_as_a_user_without_a_name(
    image: Buildah, place: Path, clusters: ClusterPair
) -> None:
    create_topic(clusters.east, "imaged")
    write(clusters.east, "imaged", numbered(300))
    data = place / "data"
    data.mkdir()
    flow, by_spark = {"topics": ["imaged"]}, {"small_batch_records": 0}  # by Spark, with its Java
    write_topology(data, clusters.east, clusters.west, flow, by_spark)
    os.chown(data, 20001, 20001)
    container = image("from", "--pull-never", "localhost/mirrorlake")

    def run(*words: str) -> str:
        # Its name has to resolve, as Docker and Kubernetes have it in the container's /etc/hosts.
        as_there = ("--hostname", "localhost", "--network", "host")
        mount = f"{data}:/data:rw"
        return image("run", *as_there, "--volume", mount, container, "--", *words)

    assert run("id", "-u") == "20001"
    assert run("mirrorlake", "version")
    file = ("-c", "/data/mirrorlake.yml")
    run("mirrorlake", *file, "run", "--once")
    counted = run("mirrorlake", *file, "sql", "--json", "SELECT count(*) AS n FROM records")
    assert re.search(r'"n": 300\b', counted), counted
    long = "SELECT count(*) AS n FROM latency WHERE way = 'long'"
    assert not re.search(r'"n": 0\b', run("mirrorlake", *file, "sql", "--json", long))
