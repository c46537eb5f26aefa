"""The Java runtime that Spark and the embedded Kafka brokers start with, and what a JVM writes."""

import logging
import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirrorlake.errors import MissingJava

logger = logging.getLogger(__name__)

OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(\d+)')
#: Known versions, by the path and modification time of the `java` file.
_versions: dict[tuple[Path, int], int] = {}
#: A line of every Spark JVM at its start, which is no news.
_NO_NEWS = "WARNING: Using incubator modules:"
_HOMEBREW = ("/opt/homebrew/opt/openjdk@17/bin/java", "/usr/local/opt/openjdk@17/bin/java")


def find_java() -> Path:
    """The first `java` of version 17 or newer: of JAVA_HOME, PATH, then the advised places."""
    unusable: dict[str, str] = {}
    for candidate in _candidates():
        version = java_version(candidate)
        if version is not None and version >= OLDEST_JAVA:
            return candidate.resolve()
        unusable[str(candidate)] = "no runtime" if version is None else f"version {version}"
    raise MissingJava(_advice(unusable))


def java_version(java: Path) -> int | None:
    """Return the feature version (17, 21, ...) that `java -version` prints, 8 for "1.8", None if it
    does not run. It starts a JVM, so the answer is kept until the file changes."""
    try:
        asked = (java, java.stat().st_mtime_ns)
    except OSError:
        return None
    version = _versions.get(asked) or _printed_version(java)
    if version is not None:
        _versions[asked] = version
    return version


def made_up_name() -> str | None:
    """A name for a user without one, as Kubernetes may set it in a container; else None."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return f"user-{os.getuid()}"
    return None


def nameless_flags() -> list[str]:
    """Flags that give such a user a name and a folder in Java, which would use "?" for both."""
    name = made_up_name()
    if name is None:
        return []
    home = os.environ.get("HOME") or ""
    usable = os.path.isabs(home) and os.access(home, os.W_OK)
    return [f"-Duser.name={name}", f"-Duser.home={home if usable else tempfile.gettempdir()}"]


def _printed_version(java: Path) -> int | None:
    try:
        printed = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(printed.stderr + printed.stdout)
    if match is None:
        return None
    version = int(match.group(1))
    return 8 if version == 1 else version


def _candidates() -> Iterator[Path]:
    """Yield each existing `java` once, in order of preference."""
    homes = [os.environ["JAVA_HOME"]] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    installed = sorted(Path.home().glob(".jdk/*")) + sorted(
        Path.home().glob(".jdk/*/Contents/Home")
    )
    places = [Path(home) / "bin" / "java" for home in homes]
    places += [Path(on_path)] if on_path else []
    places += [home / "bin" / "java" for home in installed] + [Path(java) for java in _HOMEBREW]
    for place in dict.fromkeys(places):
        if place.is_file():
            yield place


def _advice(unusable: dict[str, str]) -> str:
    seen = "no java in JAVA_HOME or on PATH"
    if unusable:
        seen = "only " + ", ".join(f"{path} ({what})" for path, what in unusable.items())
    return (
        f"Spark and Kafka need Java 17 or newer and there is {seen}: install it with `apt-get "
        "install openjdk-17-jre-headless` on Debian, `brew install openjdk@17` on macOS, or "
        "anywhere with `pip install install-jdk` and `python -c \"import jdk; jdk.install('17')\"`"
    )


def address_where_the_host_has_none() -> dict[str, str]:
    """The address of this host for Spark if its own name does not resolve, as in a container
    without /etc/hosts: Spark would fail at its start. Empty if it resolves, or is set already."""
    if "SPARK_LOCAL_IP" in os.environ or "SPARK_LOCAL_HOSTNAME" in os.environ:
        return {}
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return {"SPARK_LOCAL_IP": "127.0.0.1"}
    return {}


@contextmanager
def logged_stderr() -> Iterator[int]:
    """A descriptor for stderr of a JVM that the block starts. Its lines are logged: they look like
    other output, and `--log json` holds only JSON."""
    reading, writing = os.pipe()
    threading.Thread(target=_log, args=(reading,), name="output of the JVM", daemon=True).start()
    try:
        yield writing
    finally:
        os.close(writing)  # the process has its own copy by now; the pipe ends with the process


def _log(reading: int) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip() and not line.startswith(_NO_NEWS):
                logger.warning("%s", line.rstrip())
