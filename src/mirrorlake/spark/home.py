"""Where a session's JVM finds Spark: a folder that only links to the scripts and jars of the
installed pyspark.

pyspark's own folder also holds `python/lib/pyspark.zip`, for clusters without pyspark. If a JVM
finds it there, its Python processes import pyspark from it, and compile it each time. Here they
import the installed one, the same code: 0.2 s a process instead of 0.5.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirrorlake.spark.jars import pyspark_jars

logger = logging.getLogger(__name__)

_VARIABLE = "SPARK_HOME"
#: The setting that marks a session of ours without Delta's jar.
NO_DELTA_SETTING = "spark.mirrorlake.noDelta"
#: Variables of the systems that may provide this process's session: Databricks, Spark Connect,
#: spark-submit.
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


@contextmanager
def at_spark_home() -> Iterator[None]:
    """Let a JVM that the block starts find Spark there."""
    chosen = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = str(spark_home())
    try:
        yield
    finally:
        if not chosen:
            del os.environ[_VARIABLE]


def _link(link: Path, target: Path) -> None:
    """Make `link` lead to `target`, atomically; other processes may do the same."""
    if link.is_symlink() and link.readlink() == target:
        return
    fresh = link.with_name(f".{link.name}-{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def session_is_given() -> bool:
    """Whether another system provides this process's session: Databricks, Spark Connect or
    spark-submit."""
    return bool(_GIVEN & os.environ.keys())


def starts_its_own() -> bool:
    """Whether `session.open_session` would start a JVM here: there is no session, and none is
    provided."""
    if session_is_given() or "pyspark.sql" not in sys.modules:
        return not session_is_given()
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is None


def over_connect() -> bool:
    """Whether this process's session is one of Spark Connect; while pyspark is not imported there
    is no session."""
    if "pyspark.sql" not in sys.modules:
        return False
    from pyspark.sql.utils import is_remote

    return bool(is_remote())
