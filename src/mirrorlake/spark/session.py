"""The one module that builds a Spark session: the only one that may touch what Spark Connect lacks.

On Databricks, in a notebook and in tests a session is there; everywhere else `local_session` makes
one that is tuned for many small Delta commits on one machine.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from mirrorlake.heaps import share_heaps_in_children
from mirrorlake.spark.class_archive import SESSIONS, TABLES, archive_flags
from mirrorlake.spark.home import NO_DELTA_SETTING, at_spark_home, session_is_given, spark_home
from mirrorlake.spark.jars import spark_jars
from mirrorlake.spark.java import (
    address_where_the_host_has_none,
    find_java,
    logged_stderr,
    made_up_name,
    nameless_flags,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: Settings of a session with Delta's jar; and the one of a session without.
DELTA_SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
NO_DELTA = {NO_DELTA_SETTING: "true"}
#: Settings of a local session; each is there for a measured reason.
LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # With a few rows per plan, more shuffle partitions only cost task starts. The default of 50
    # snapshot partitions makes every commit slow.
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # VACUUM lists a table's files in so many tasks; the default of 10,000 takes a minute.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A reader of the change feed that is ahead of the table gets no rows instead of an error.
    "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    # For each numbered commit Delta computes the state of the log, with figures that only checksum
    # files have: a tenth of the time of such a commit with few rows.
    "spark.databricks.delta.fileSizeHistogramMetrics.enabled": "false",
    "spark.databricks.delta.checksumDVMetrics.enabled": "false",
    "spark.databricks.delta.checksumDeletedRecordCountsHistogramMetrics.enabled": "false",
    # Spark makes each execution's plan a text for an interface that is off: the shortest will do.
    "spark.sql.ui.explainMode": "simple",
    # Either would change the order in which rows were read: see landing/land.py.
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    "spark.databricks.delta.autoCompact.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    # A caller always gets all of them, each as JSON (landing/session_sink.py); the default is 100.
    "spark.sql.streaming.numRecentProgressUpdates": "40",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Measured: zstd costs a backlog of 120 B records a ninth of its rate, for stage files of half
    # the size; `maintain`, whose session is a short one, makes them that small later.
    "spark.sql.parquet.compression.codec": "snappy",
    # Spark's default, INT96, is twelve bytes a row that no reader can skip by.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.hadoop.parquet.compression.codec.zstd.level": "1",
    "spark.hadoop.parquet.block.size": str(32 << 20),
    "spark.hadoop.parquet.enable.dictionary": "true",
    "spark.hadoop.parquet.enable.dictionary#key": "false",
    "spark.hadoop.parquet.enable.dictionary#value": "false",
    "spark.hadoop.parquet.enable.dictionary#offset": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "mirrorlake.spark.worker_daemon",
    "spark.sql.legacy.createHiveTableByDefault": "false",
}
#: What a short session adds. It handles few rows, and generating, compiling and loading code for
#: each plan costs twice what interpreting the plan does. Its files stay, so it writes them small.
SHORT_SETTINGS: Mapping[str, str] = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.parquet.compression.codec": "zstd",
}
#: Thirty times the JVM's thresholds: hot loops reach them in a moment. The thousands of lukewarm
#: methods of Spark's planning do not; optimising them costs a quarter of a start's CPU.
OPTIMISE_LESS = (
    "-XX:Tier4InvocationThreshold=150000",
    "-XX:Tier4MinInvocationThreshold=18000",
    "-XX:Tier4CompileThreshold=450000",
    "-XX:Tier4BackEdgeThreshold=1200000",
)
#: JVM flags of a short session: no optimising compiler, and as much room for compiled code as there
#: is with one. The default without is a fifth, which fills in a few minutes of planning; then the
#: JVM throws code away and compiles it again for a fifth of its CPU.
OPTIMISE_NEVER = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
#: How long Hive's client waits for its metastore if no setting says it: one that accepts the
#: connection and does not answer costs ten minutes by default, for each of several tries.
METASTORE_SETTINGS: Mapping[str, str] = {"hive.metastore.client.socket.timeout": "20s"}
#: Set to 1, it makes every session of this process and its children a short one.
SHORT_VARIABLE = "MIRRORLAKE_SHORT_SESSIONS"
_STARTING = threading.Lock()


def local_session(
    cores: str = "*",
    settings: Mapping[str, str] | None = None,
    *,
    progress: Callable[[str], None] | None = None,
    short: bool = False,
    delta: bool = True,
    more_jars: Iterable[Path] = (),
) -> SparkSession:
    """Build or return a session on this machine. MIRRORLAKE_JAVA_OPTIONS adds flags of your own.

    Args:
        cores: the value in `local[...]`, or a whole master URL.
        settings: Spark settings; they override ours.
        progress: gets a line when the first call on a machine resolves JVM jars into a per-user
            cache.
        short: a session that answers a question and ends: the JVM leaves out its optimising
            compiler, and Spark its code generation, which cost more than such a session ever gets
            back.
        delta: whether the session reads and writes Delta tables by itself. One that only runs tasks
            over files needs no jar but pyspark's, so nothing is resolved for it.
        more_jars: added to those of Delta.

    Raises:
        MissingJava: there is no usable Java.
    """
    java = find_java()
    os.environ.setdefault("JAVA_HOME", str(java.resolve().parent.parent))
    # Else the Python workers take whichever python3 is first on PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # How many ms Arrow's allocator in workers keeps memory for next rows (docs/not_obvious.md).
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "1000")
    if "://" not in cores:
        os.environ.update(address_where_the_host_has_none())
    share_heaps_in_children()
    # A task is tried once: the caller of the job knows better when to try again
    # (run/flow_worker.py), and one that waits for a lost cluster holds a core that others need.
    master = cores if "[" in cores or "://" in cores else f"local[{cores},1]"
    short = short or os.environ.get(SHORT_VARIABLE) == "1"
    jars = [*(spark_jars(progress) if delta else ()), *more_jars]
    # A class path serves this machine alone, and lets Java take classes from an archive.
    shipped = [] if master.startswith("local[") else jars
    flags = ["-XX:+UseParallelGC", *(OPTIMISE_NEVER if short else OPTIMISE_LESS)]
    flags += archive_flags(TABLES if delta else SESSIONS, java)
    flags += nameless_flags()
    flags += os.environ.get("MIRRORLAKE_JAVA_OPTIONS", "").split()
    log_settings = Path(str(files("mirrorlake.spark") / "log4j2.properties"))
    wanted = {
        "spark.master": master,
        "spark.app.name": "mirrorlake",
        **LOCAL_SETTINGS,
        **query_log_settings(spark_home() / "jars"),
        **(DELTA_SETTINGS if delta else NO_DELTA),
        **(SHORT_SETTINGS if short else {}),
        **(settings or {}),
        # Only for the workers (failpoints.py): a command started here is a driver of its own.
        "spark.executorEnv.MIRRORLAKE_DRIVER_PID": str(os.getpid()),
        **({"spark.jars": ",".join(map(str, shipped))} if shipped else {}),
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={log_settings} {' '.join(flags)}"
        ),
    }
    with _STARTING:
        if not SparkContext._gateway:
            _start_jvm(wanted, () if shipped else jars)
        if SparkContext._active_spark_context is not None:
            # The existing session is returned: whether it has Delta was decided when it was made.
            wanted.pop(NO_DELTA_SETTING, None)
        builder = SparkSession.builder
        for key, value in wanted.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        _bound_metastore(session.sparkContext)
        return session


def _bound_metastore(context: SparkContext) -> None:
    """Give a session with a Hive catalog METASTORE_SETTINGS, before it asks for the first name.
    Values of `spark-defaults.conf` or `hive-site.xml` take precedence."""
    if context.getConf().get("spark.sql.catalogImplementation") == "hive":
        for key, value in METASTORE_SETTINGS.items():
            _hadoop_settings(context).setIfUnset(key, value)


def metastore_address() -> str | None:
    """The address of the Hive metastore that this process's session asks; None if unknown."""
    with suppress(Exception):  # only needed for a sentence about another error
        context = SparkContext._active_spark_context
        if context is not None:
            return str(_hadoop_settings(context).get("hive.metastore.uris") or "") or None
    return None


def _hadoop_settings(context: SparkContext) -> Any:
    return context._jsc.hadoopConfiguration()


def query_log_settings(jars: Path) -> dict[str, str]:
    """Settings that make the log of a streaming query, two entries a batch, cheap; found in the
    folder of Spark's jars.

    Renames on a local disk are atomic, so the plain manager will do; Spark's default one starts
    shell commands, for 30 ms an entry. The plain one has no public name, and Spark 4.1 has moved
    it: searching the jar takes 10 ms. A Spark without it keeps its default.
    """
    for jar in jars.glob("spark-sql_*.jar"):
        with ZipFile(jar) as classes:
            for name in classes.namelist():
                if name.endswith("/FileSystemBasedCheckpointFileManager.class"):
                    manager = name.removesuffix(".class").replace("/", ".")
                    return {"spark.sql.streaming.checkpointFileManagerClass": manager}
    return {}


def _start_jvm(settings: Mapping[str, str], jars: Sequence[Path]) -> None:
    """Start the JVM for the session as pyspark itself would, except that its stderr is logged and
    that its class path ends with `jars`."""
    with logged_stderr() as stderr, at_spark_home(jars):
        conf = SparkConf().setAll(list(settings.items()))
        gateway = launch_gateway(conf, {"stderr": stderr})  # type: ignore[no-untyped-call]
    if (name := made_up_name()) is not None:
        # else Hadoop asks the system for the user's name when the session is made, and fails
        logins = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
        logins.setLoginUser(logins.createRemoteUser(name))
    SparkContext._ensure_initialized(gateway=gateway)


#: Loggers of pyspark that print Spark's errors as a page of JSON; they are raised, too.
PRINTING = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def open_session(
    progress: Callable[[str], None] | None = None, short: bool = True, delta: bool = True
) -> SparkSession:
    """The session that is there, else a local one: `short` and `delta` as in `local_session`."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if session_is_given():
        return SparkSession.builder.getOrCreate()
    for name in PRINTING:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    cores = os.environ.get("MIRRORLAKE_CORES", "*")
    return local_session(cores, progress=progress, short=short, delta=delta)


def start_workers(spark: SparkSession) -> None:
    """Have a local session start the process that forks Python workers, before a caller waits."""
    spark.range(1, numPartitions=1).mapInArrow(unchanged, "id bigint").collect()


def unchanged(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """The rows as they are: the work of a worker that is only to start."""
    return batches


@contextmanager
def settings_for_now(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Give a session other settings during the block; its own are restored whatever happens."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, own in before.items():
            if own is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, own)
