"""Resolves the JVM jars of Spark's connectors, of the Kafka brokers and of MirrorMaker 2, once per
user.

pip brings no Kafka broker and no Delta jar. The pip-installed pyspark carries Apache Ivy, which
resolves them into `~/.cache/mirrorlake/jars/<set>-<hash of its coordinates>/` (or below
`$MIRRORLAKE_CACHE`). A set appears whole, by one rename, or not at all; later calls only list the
folder. `$MIRRORLAKE_IVY_SETTINGS` may name an Ivy settings file for a repository of your own.
"""

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

from mirrorlake.caches import cache_root
from mirrorlake.errors import InputError
from mirrorlake.extras import missing
from mirrorlake.spark.java import find_java

#: Delta has a jar of this version for each of these minor versions of Spark.
DELTA_VERSION = "4.4.0"
SPARK_MINORS = ("4.0", "4.1", "4.2")
#: A part of Spark's Kafka connector that, unlike the connector, is the same for all of them; not
#: every repository has its later releases.
TOKEN_PROVIDER = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0"
KAFKA_VERSION = "4.1.1"
#: The version that Kafka's own jars bring; without the binding brokers write no logs.
LOG4J_VERSION = "2.24.3"

Say = Callable[[str], None]

_RESOLVE_SECONDS = 900
_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
# Spark carries the classes of these in jars of other names (jcl-over-slf4j, RoaringBitmap).
_CARRIED_RENAMED = {"commons-logging", "shims"}
_REVISION = re.compile(r"-\d[^-]*(-[A-Za-z][\w.]*)?\.jar$")


@dataclass(frozen=True)
class JarSet:
    """One set of jars. `title` and `seconds` are for the progress line; jars in the folder `beside`
    are left out. `overrides` sets the versions of dependencies."""

    name: str
    title: str
    seconds: int
    coordinates: tuple[str, ...]
    beside: Path | None = None
    overrides: tuple[str, ...] = ()


def spark_jars(progress: Say | None = None) -> list[Path]:
    """The jars that bring Delta to Spark. Raises InputError if the installed pyspark has none."""
    return jars_of(_spark_set(), progress)


def cached_spark_jars() -> list[Path]:
    """These jars, if this user's cache has them; none otherwise, also where there are none."""
    if spark_minor() not in SPARK_MINORS:
        return []
    return sorted((cache_folder() / _folder_name(_spark_set())).glob("*.jar"))


def _spark_set() -> JarSet:
    minor = spark_minor()
    if minor not in SPARK_MINORS:
        raise InputError(
            f"Delta {DELTA_VERSION} has no jar for Spark {minor}: install a pyspark of "
            f"{', '.join(SPARK_MINORS)}, as in pip install 'pyspark=={SPARK_MINORS[-1]}.*'"
        )
    coordinates = (f"io.delta:delta-spark_{minor}_2.13:{DELTA_VERSION}",)
    return JarSet("spark", "Delta", 20, coordinates, pyspark_jars())


def connector_jars(progress: Say | None = None) -> list[Path]:
    """The jars of Spark's own Kafka source and sink, for plain pipelines of `mirrorlake bench`."""
    coordinates = (f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark_minor()}.0",)
    jar_set = JarSet(
        "connector",
        "Spark's Kafka connector",
        20,
        coordinates,
        beside=pyspark_jars(),
        overrides=(TOKEN_PROVIDER,),
    )
    return jars_of(jar_set, progress)


def kafka_jars(progress: Say | None = None, version: str = KAFKA_VERSION) -> list[Path]:
    """Return the jars of a whole broker, of a version from 2.8 on."""
    coordinates = (f"org.apache.kafka:kafka_2.13:{version}", _log4j())
    return jars_of(JarSet("kafka", "Kafka broker", 40, coordinates), progress)


def mirror_jars(progress: Say | None = None) -> list[Path]:
    """Return the jars of MirrorMaker 2 and of Kafka's own load tools, for `mirrorlake bench`."""
    names = ("connect-mirror", "connect-runtime", "kafka-tools")
    coordinates = (*(f"org.apache.kafka:{name}:{KAFKA_VERSION}" for name in names), _log4j())
    return jars_of(JarSet("mirror", "MirrorMaker 2", 60, coordinates), progress)


def jars_of(jar_set: JarSet, progress: Say | None = None) -> list[Path]:
    """Return the jars of a set, resolving them first if this user's cache lacks them."""
    folder = cache_folder() / _folder_name(jar_set)
    if not folder.is_dir():
        with locked(folder.parent):
            if not folder.is_dir():
                if progress is not None:
                    progress(f"resolving {jar_set.title} jars, once (about {jar_set.seconds} s)…")
                _resolve_into(folder, jar_set)
    return sorted(folder.glob("*.jar"))


def cache_folder() -> Path:
    """The folder of all jar sets: `$MIRRORLAKE_CACHE/jars`, or `~/.cache/mirrorlake/jars`."""
    return cache_root() / "jars"


def pyspark_jars() -> Path:
    """Return the folder of the jars that the installed pyspark carries."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise missing("spark")
    return Path(spec.submodule_search_locations[0]) / "jars"


def spark_minor() -> str:
    """The minor version of the installed pyspark, such as 4.2, for which connectors are made."""
    try:
        installed = version("pyspark")
    except PackageNotFoundError as error:
        raise missing("spark") from error
    return ".".join(installed.split(".")[:2])


def artifact_of(jar: str) -> str:
    """The artifact name in a jar's file name: `kafka-clients` for `kafka-clients-3.9.0.jar`."""
    return _REVISION.sub("", jar)


def run_ivy(jar_set: JarSet, target: Path, ivy_cache: Path, log: Path) -> int:
    """Run Ivy in `target`, which gets the coordinates' jars with dependencies; its exit code."""
    ivy = sorted(pyspark_jars().glob("ivy-*.jar"))
    if not ivy:
        raise InputError(
            f"the installed pyspark has no ivy-*.jar in {pyspark_jars()}: install pyspark from PyPI"
        )
    module = target / "ivy.xml"
    module.write_text(_ivy_module(jar_set), encoding="utf-8")
    settings = os.environ.get("MIRRORLAKE_IVY_SETTINGS")
    command = [str(find_java()), "-cp", str(ivy[-1]), "org.apache.ivy.Main"]
    command += ["-settings", str(Path(settings).expanduser().absolute())] if settings else []
    command += ["-ivy", module.name, "-confs", "default", "-cache", str(ivy_cache)]
    command += ["-types", "jar", "bundle", "-retrieve", _PATTERN]
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                command,
                cwd=target,
                stdout=output,
                stderr=output,
                timeout=_RESOLVE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1
    module.unlink()
    return done.returncode


def _resolve_into(folder: Path, jar_set: JarSet) -> None:
    """Resolve beside `folder`, then rename: no process ever sees half a set."""
    for stale in folder.parent.glob(".resolving-*"):
        rmtree(stale, ignore_errors=True)
    log = folder.parent / f"{folder.name}.log"
    work = Path(tempfile.mkdtemp(prefix=".resolving-", dir=folder.parent))
    try:
        code = run_ivy(jar_set, work, folder.parent / "ivy", log)
        if code != 0 or not any(work.glob("*.jar")):
            raise InputError(
                f"the {jar_set.title} jars ({', '.join(jar_set.coordinates)}) could not be "
                f"resolved: see {log}, and check that this machine reaches a Maven repository"
            )
        _drop_carried(work, jar_set.beside)
        work.chmod(0o755)
        work.rename(folder)
    finally:
        rmtree(work, ignore_errors=True)


def _drop_carried(work: Path, beside: Path | None) -> None:
    """Delete jars of artifacts that `beside` has: two versions on one class path break Spark."""
    if beside is None:
        return
    carried = {artifact_of(jar.name) for jar in beside.glob("*.jar")} | _CARRIED_RENAMED
    for jar in work.glob("*.jar"):
        if artifact_of(jar.name) in carried:
            jar.unlink()


@contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the file lock of a folder, made if missing; the system drops it when the holder dies.

    Yields whether the lock is held: False only if another process holds it and `wait` is False.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def _folder_name(jar_set: JarSet) -> str:
    carried: list[str] = []
    if jar_set.beside is not None:
        carried = sorted(jar.name for jar in jar_set.beside.glob("*.jar"))
        carried += sorted(_CARRIED_RENAMED)
    facts = "\n".join([*jar_set.coordinates, *jar_set.overrides, *carried])
    return f"{jar_set.name}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"


def _ivy_module(jar_set: JarSet) -> str:
    needed = "".join(
        '<dependency org="{}" name="{}" rev="{}" conf="default->default"/>'.format(*each.split(":"))
        for each in jar_set.coordinates
    )
    needed += "".join(
        '<override org="{}" module="{}" rev="{}"/>'.format(*each.split(":"))
        for each in jar_set.overrides
    )
    return (
        '<ivy-module version="2.0"><info organisation="mirrorlake" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{needed}</dependencies></ivy-module>\n"
    )


def _log4j() -> str:
    return f"org.apache.logging.log4j:log4j-slf4j-impl:{LOG4J_VERSION}"
