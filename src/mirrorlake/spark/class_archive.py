"""An archive of the classes of a Spark session, which Java maps into memory (class data sharing, JEP 310 and JEP 350).

Else each session reads some 15,000 classes from 250 jars and verifies them: half of the time until its first answer.
Java binds an archive to the paths of those jars, so it lives in the Python environment that holds them. It takes 40 s
of a core to make, so no session does that on its way: the demo has it made behind itself (`make_behind`), by this
module as a process of its own that warms up (`lake/warmup.py`) and outlives whoever asked. Until it is there, and
where it cannot be made, sessions start without. `MIRRORLAKE_CLASS_ARCHIVE=off` does without for good.
"""

import hashlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mirrorlake.spark.jars import locked, pyspark_jars, spark_jars
from mirrorlake.spark.java import find_java

logger = logging.getLogger(__name__)

VARIABLE = "MIRRORLAKE_CLASS_ARCHIVE"
#: What makes the archive: a module that opens a session, works, and ends.
WARMUP = "mirrorlake.lake.warmup"
_SECONDS = 300
# A JVM reports each class that it cannot archive, and of an archive that does not fit: both are no news for a person.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def archive_flags(java: Path, jars: Sequence[Path]) -> list[str]:
    """Flags with which `java` starts from the archive; none where there is none."""
    if os.environ.get(VARIABLE) == "off":
        return []
    archive = _place(java, jars)
    # An empty file says that it was tried in vain.
    there = archive.exists() and archive.stat().st_size
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *_QUIET] if there else []


def make_behind(say: Callable[[str], None]) -> None:
    """Have the archive made by a process that goes on when this one ends, if there is none and one can be."""
    if os.environ.get(VARIABLE) == "off":
        return
    archive = _place(find_java(), spark_jars())
    # A folder that is not there yet is made below the first one that is.
    above = next(folder for folder in archive.parents if folder.exists())
    if archive.exists() or not os.access(above, os.W_OK):
        return
    say("preparing Java for faster starts in the background, once (about 40 s)")
    # In a session of its own, so that neither Ctrl-C nor a closed terminal ends it.
    command = [sys.executable, "-m", "mirrorlake.spark.class_archive"]
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def make() -> None:
    """Make the archive if there is none; of many processes one does. Raises OSError where it cannot be kept."""
    archive = _place(find_java(), spark_jars())
    with locked(archive.parent, wait=False) as alone:
        if alone and not archive.exists():
            _make(archive)


def _place(java: Path, jars: Sequence[Path]) -> Path:
    """A name for this Java with these jars; both are identified by their paths, sizes and times."""
    facts = [java, *sorted(pyspark_jars().glob("*.jar")), *jars]
    told = "\n".join(f"{path} {(stat := path.stat()).st_size} {stat.st_mtime_ns}" for path in facts)
    name = hashlib.sha256(told.encode()).hexdigest()[:12]
    return Path(sys.prefix) / "var" / "mirrorlake" / f"classes-{name}.jsa"


def _make(archive: Path) -> None:
    """Warm up, with a JVM that writes down what it loaded when it ends. The archive appears by one rename."""
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


if __name__ == "__main__":
    os.nice(19)
    make()
