"""Archives of classes, which Java maps into memory (class data sharing, JEP 310 and JEP 350): of
Spark sessions, without Delta and with it, and of an embedded broker.

Without one, a session reads and verifies some 15,000 classes from 250 jars: half of the time until
its first answer; a broker takes twice as long to start. Java binds an archive to the paths of those
jars, so it lives in the Python environment of pyspark. Making them takes two minutes of a core, so
no command waits: the demo starts it in the background (`make_behind`), as a process of this module
that outlives it. Without them Java starts as ever. `MIRRORLAKE_CLASS_ARCHIVE=off` turns them off
for good.
"""

import hashlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirrorlake.spark.home import spark_home
from mirrorlake.spark.jars import cached_spark_jars, kafka_jars, locked
from mirrorlake.spark.java import find_java

logger = logging.getLogger(__name__)

VARIABLE = "MIRRORLAKE_CLASS_ARCHIVE"
_SECONDS = 300
#: Marks a process that makes archives while others work.
_BEHIND = "--behind"
# A JVM reports each class that it cannot archive, and an archive that does not fit: neither is news
# for a person.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


@dataclass(frozen=True)
class Archive:
    """The archive of one kind of JVM, whose classes come from `jars`; none is made where there are
    no jars. `warmup` is the module that starts such a JVM, has it work, and ends; `options` is the
    variable of Java's flags; the archive `otherwise` does where this one is missing."""

    name: str
    warmup: str
    options: str
    jars: Callable[[], Sequence[Path]]
    otherwise: "Archive | None" = None


def _session_jars() -> list[Path]:
    """The jars of pyspark by the paths that the JVM gets."""
    return sorted((spark_home() / "jars").glob("*.jar"))


def _table_jars() -> list[Path]:
    """These and Delta's, which stand behind them on the class path; none where no session with
    Delta was ever started."""
    delta = cached_spark_jars()
    return [*_session_jars(), *delta] if delta else []


_OPTIONS, _WARMUP = "MIRRORLAKE_JAVA_OPTIONS", "mirrorlake.lake.warmup"
SESSIONS = Archive("classes", _WARMUP, _OPTIONS, _session_jars)
#: Of sessions with Delta.
_TABLES_WARMUP = "mirrorlake.devtools.local.warmup_tables"
TABLES = Archive("tables", _TABLES_WARMUP, _OPTIONS, _table_jars, SESSIONS)
_BROKERS_WARMUP, _BROKERS_OPTIONS = (
    "mirrorlake.devtools.local.warmup",
    "MIRRORLAKE_BROKER_JAVA_OPTIONS",
)
BROKERS = Archive("brokers", _BROKERS_WARMUP, _BROKERS_OPTIONS, lambda: kafka_jars())


def archive_flags(archive: Archive, java: Path) -> list[str]:
    """Flags with which `java` starts from an archive; none where there is none."""
    if os.environ.get(VARIABLE) == "off":
        return []
    place = _place(archive, java)
    # An empty file means that making it has failed.
    if place.exists() and place.stat().st_size:
        return [f"-XX:SharedArchiveFile={place}", "-Xshare:auto", *_QUIET]
    return archive_flags(archive.otherwise, java) if archive.otherwise else []


def make_behind(say: Callable[[str], None]) -> None:
    """Make missing archives, if possible, in a process that goes on when this one ends."""
    if os.environ.get(VARIABLE) == "off":
        return
    places = _places()
    # A missing folder would be made below the first existing one.
    above = next(folder for folder in places[SESSIONS].parents if folder.exists())
    if all(place.exists() for place in places.values()) or not os.access(above, os.W_OK):
        return
    say("preparing Java for faster starts in the background, once (a minute or two)")
    # In a session of its own, so that neither Ctrl-C nor a closed terminal ends it.
    command = [sys.executable, "-m", "mirrorlake.spark.class_archive", _BEHIND]
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def make() -> None:
    """Make missing archives; only one of many processes does. Raises OSError if that fails."""
    for archive, place in _places().items():
        with locked(place.parent, wait=False) as alone:
            if alone and not place.exists():
                _make(archive, place)


def _places() -> dict[Archive, Path]:
    java = find_java()
    wanted = (archive for archive in (SESSIONS, TABLES, BROKERS) if archive.jars())
    return {archive: _place(archive, java) for archive in wanted}


def _place(archive: Archive, java: Path) -> Path:
    """The path for this Java with an archive's jars, identified by paths, sizes and times."""
    facts = [java, *archive.jars()]
    fingerprint = "\n".join(
        f"{path} {(stat := path.stat()).st_size} {stat.st_mtime_ns}" for path in facts
    )
    name = hashlib.sha256(fingerprint.encode()).hexdigest()[:12]
    return Path(sys.prefix) / "var" / "mirrorlake" / f"{archive.name}-{name}.jsa"


def _make(archive: Archive, place: Path) -> None:
    """Warm up, with a JVM that notes what it loaded when it ends. It appears by a rename."""
    for stale in place.parent.glob(f"{archive.name}-*.jsa*"):
        stale.unlink()
    written = place.with_suffix(".jsa.new")
    options = " ".join([f"-XX:ArchiveClassesAtExit={written}", *_QUIET])
    environment = {**os.environ, VARIABLE: "off", archive.options: options, "MIRRORLAKE_CORES": "2"}
    command = [sys.executable, "-m", archive.warmup]
    try:
        # The JVM outlives its Python by the time of the writing; its pipe closes when it is done.
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        message = done.stderr.decode(errors="replace").strip()
    except subprocess.TimeoutExpired:  # the next attempt may find more CPU
        logger.warning("no archive of Java's %s yet: it takes over %s s", archive.name, _SECONDS)
        written.unlink(missing_ok=True)
        return
    if not written.exists() or not written.stat().st_size:
        logger.warning(
            "no archive of Java's %s, so these start slowly: %s",
            archive.name,
            message.splitlines()[-1:],
        )
        written.touch()
    written.rename(place)


if __name__ == "__main__":
    if _BEHIND in sys.argv:
        os.nice(19)
    make()
