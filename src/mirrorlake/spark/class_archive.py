"""An archive of the classes of a Spark session, which Java maps into memory (class data sharing, JEP 310 and JEP 350).

Else each session reads some 15,000 classes from 250 jars and verifies them: half of the time until its first answer.
Java binds an archive to the paths of those jars, so it lives in the Python environment that holds them. It is made
once, by a warmup (`lake/warmup.py`) in a process of its own; whoever comes meanwhile goes without. Where it
cannot be made, sessions start as before. `MIRRORLAKE_CLASS_ARCHIVE=off` does without.
"""

import hashlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mirrorlake.spark.jars import locked, pyspark_jars

logger = logging.getLogger(__name__)

VARIABLE = "MIRRORLAKE_CLASS_ARCHIVE"
#: What makes the archive: a module that opens a session, works, and ends.
WARMUP = "mirrorlake.lake.warmup"
_SECONDS = 300
# A JVM tells of each class that it cannot archive, and of an archive that does not fit: both are no news for a person.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def archive_flags(java: Path, jars: Sequence[Path], progress: Callable[[str], None] | None = None) -> list[str]:
    """Flags with which `java` starts from the archive, made now if there is none; none where there cannot be one."""
    if os.environ.get(VARIABLE) == "off":
        return []
    archive = _place(java, jars)
    try:
        if not archive.exists():
            with locked(archive.parent, wait=False) as alone:
                if alone and not archive.exists():
                    _make(archive, progress)
        size = archive.stat().st_size
    except OSError as error:  # another process makes it now, or this environment is not ours to write to
        logger.debug("no class archive: %s", error)
        return []
    # An empty file says that it was tried in vain.
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *_QUIET] if size else []


def _place(java: Path, jars: Sequence[Path]) -> Path:
    """A name for this Java with these jars; both are told by their paths, sizes and times."""
    facts = [java, *sorted(pyspark_jars().glob("*.jar")), *jars]
    told = "\n".join(f"{path} {(stat := path.stat()).st_size} {stat.st_mtime_ns}" for path in facts)
    name = hashlib.sha256(told.encode()).hexdigest()[:12]
    return Path(sys.prefix) / "var" / "mirrorlake" / f"classes-{name}.jsa"


def _make(archive: Path, progress: Callable[[str], None] | None) -> None:
    """Warm up, with a JVM that writes down what it loaded when it ends. The archive appears by one rename."""
    if progress is not None:
        progress("preparing Java for faster starts, once (about 40 s)…")
    for stale in archive.parent.glob("*.jsa*"):
        stale.unlink()
    written = archive.with_suffix(".jsa.new")
    options = " ".join([f"-XX:ArchiveClassesAtExit={written}", *_QUIET])
    environment = {**os.environ, VARIABLE: "off", "MIRRORLAKE_JAVA_OPTIONS": options, "MIRRORLAKE_CORES": "2"}
    command = [sys.executable, "-m", WARMUP]
    try:
        # The JVM outlives its Python by the time it takes to write; its end of the pipe says when it is done.
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
        said = done.stderr.decode(errors="replace").strip()
    except subprocess.TimeoutExpired:
        said = f"the warmup took more than {_SECONDS} s"
    if not written.exists() or not written.stat().st_size:
        logger.warning("no archive of Java's classes, so sessions start slowly: %s", said.splitlines()[-1:])
        written.touch()
    written.rename(archive)
