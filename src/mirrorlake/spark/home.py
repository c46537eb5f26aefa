"""Where a session's JVM finds Spark: a folder that only links to the scripts and jars of the
installed pyspark. In pyspark's own folder it finds `python/lib/pyspark.zip` too, and its Python
processes import that and compile it each time: 0.5 s a process instead of 0.2."""

import logging
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from mirrorlake.spark.jars import pyspark_jars

logger = logging.getLogger(__name__)

_VARIABLE, _SETTINGS = "SPARK_HOME", "SPARK_CONF_DIR"
#: Of spark-submit: what it adds at the end of a class path; its arguments, as pyspark names them;
#: the file of settings in their folder, and the argument that names another.
_CLASS_PATH, _ARGUMENTS = "SPARK_DIST_CLASSPATH", "PYSPARK_SUBMIT_ARGS"
_DEFAULTS, _NAMES_DEFAULTS = "spark-defaults.conf", "--properties-file"
#: The setting that marks a session of ours without Delta's jar.
NO_DELTA_SETTING = "spark.mirrorlake.noDelta"
#: Variables of what may provide this process's session: Databricks, Spark Connect, spark-submit.
_GIVEN = {"DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"}


def spark_home() -> Path:
    """The folder, made if missing, in the Python environment that holds pyspark; or the one that
    the user has chosen; or pyspark's own if none can be made."""
    if chosen := os.environ.get(_VARIABLE):
        return Path(chosen)
    home, pyspark = Path(sys.prefix) / "var" / "mirrorlake" / "spark", pyspark_jars().parent
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name in ("bin", "jars"):
            _link(home / name, pyspark / name)
    except OSError as error:
        logger.info("%s cannot be made (%s): Spark's Python processes start slowly", home, error)
        return pyspark
    return home


def at_spark_home(jars: Sequence[Path] = ()) -> AbstractContextManager[None]:
    """Let a JVM that the block starts find Spark there, and `jars`, by a class path that begins
    alike whatever folder of settings the user named: an archive of classes fits no other one
    (`spark/class_archive.py`)."""
    variables = {_VARIABLE: str(spark_home()), **_settings_behind_jars()}
    if jars:
        behind = variables.get(_CLASS_PATH) or os.environ.get(_CLASS_PATH)
        variables[_CLASS_PATH] = os.pathsep.join(filter(None, (*map(str, jars), behind)))
    return in_environment(variables)


@contextmanager
def in_environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while the block runs, for child processes to inherit."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _settings_behind_jars() -> dict[str, str]:
    """Variables that move the folder SPARK_CONF_DIR from the front of the class path to its end,
    where no folder is in front of it now, and name its spark-defaults.conf, which spark-submit
    reads from nowhere else. None for a folder with a script of its own, which has to stay where
    spark-submit runs it."""
    folders = (_SETTINGS, _VARIABLE, "HADOOP_CONF_DIR", "YARN_CONF_DIR")
    if [name for name in folders if os.environ.get(name)] != [_SETTINGS]:
        return {}
    folder = Path(os.environ[_SETTINGS])
    if (folder / "spark-env.sh").exists():
        return {}
    behind = os.pathsep.join(filter(None, (str(folder), os.environ.get(_CLASS_PATH))))
    variables = {_SETTINGS: str(spark_home() / "conf"), _CLASS_PATH: behind}
    arguments, defaults = os.environ.get(_ARGUMENTS, "pyspark-shell"), folder / _DEFAULTS
    if defaults.exists() and _NAMES_DEFAULTS not in arguments:
        named = f"{_NAMES_DEFAULTS} {shlex.quote(str(defaults.absolute()))}"
        variables[_ARGUMENTS] = f"{named} {arguments}"
    return variables


def _link(link: Path, target: Path) -> None:
    """Make `link` lead to `target`, atomically; other processes may do the same."""
    if link.is_symlink() and link.readlink() == target:
        return
    fresh = link.with_name(f".{link.name}-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def session_is_given() -> bool:
    """Whether this process's session is provided: by Databricks, Spark Connect or spark-submit."""
    return bool(_GIVEN & os.environ.keys())


def starts_its_own() -> bool:
    """Whether `session.open_session` would start a JVM: there is no session, none is provided."""
    if session_is_given() or "pyspark.sql" not in sys.modules:
        return not session_is_given()
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is None


def over_connect() -> bool:
    """Whether this process's session is Spark Connect's; without pyspark imported there is none."""
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql.utils import is_remote

    return bool(is_remote())
