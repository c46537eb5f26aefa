"""What is made of the errors that Spark hands over (spark/causes.py)."""

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from mirrorlake.errors import (
    AuthenticationFailed,
    LakeError,
    MissingExtra,
    ReplicationError,
    TargetRefused,
    first_line,
)
from mirrorlake.spark.causes import (
    as_mirrorlake_error,
    cause_of,
    causes_of,
    is_conflict,
    metastore_error,
    metastore_silence,
    places_in,
)
from mirrorlake.spark.failures import SPARK_FAILURES

TASK = """An error occurred while calling o667.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 130.0 failed 1 times
  File "task.py", line 150, in _decoded
mirrorlake.errors.MapError: the target's position of a-0 carries metadata that this version cannot read
Caused by: java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:386)"""


def test_a_job_that_fails_on_its_way_to_the_driver_can_be_tried_again() -> None:
    """Rows that are fetched by toArrow fail with an error of py4j, which is none of pyspark's."""
    assert not issubclass(Py4JError, PySparkException)
    assert issubclass(Py4JError, SPARK_FAILURES)


def test_what_a_querys_source_raised_is_known_by_its_class() -> None:
    text = TASK.replace("MapError: the target's", "AuthenticationFailed: cluster east refused the")
    problem = as_mirrorlake_error(RuntimeError(text), "landing from east")
    assert type(problem) is AuthenticationFailed and problem.alias == "east"
    assert str(problem).startswith("cluster east refused the position")


def test_an_error_of_ours_stays_as_it_is_and_others_name_their_cause() -> None:
    refusal = TargetRefused("no", topic="t")
    assert as_mirrorlake_error(refusal, "flow a->b") is refusal
    other = as_mirrorlake_error(RuntimeError("x\nCaused by: java.io.EOFException"), "flow a->b")
    assert type(other) is ReplicationError
    assert str(other) == "flow a->b stopped: java.io.EOFException"


def test_a_disk_without_room_says_what_to_do() -> None:
    with pytest.raises(OSError) as full, pa.OSFile("/dev/full", "wb") as file:
        file.write(b"x")
    problem = as_mirrorlake_error(full.value, "landing from cluster east")
    assert "No space left on device; make room on the disk of the lake" in str(problem)


def test_what_a_worker_raised_says_more_than_the_innermost_cause() -> None:
    assert cause_of(RuntimeError(TASK)).startswith("mirrorlake.errors.MapError: ")


def test_a_name_that_is_only_spoken_of_is_not_what_was_raised() -> None:
    name = "mirrorlake.errors.AuthenticationFailed: "
    problem = as_mirrorlake_error(
        Py4JError(TASK.replace("mirrorlake.errors.MapError: ", f"ValueError: {name}")), "it"
    )
    assert type(problem) is ReplicationError


def test_a_conflict_of_commits_is_told_from_other_refusals() -> None:
    assert is_conflict(Py4JError("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] files were added"))
    assert not is_conflict(Py4JError("[DELTA_TABLE_NOT_FOUND] no"))


def test_an_error_tells_which_partitions_it_is_about() -> None:
    keys = {("a", 0), ("a", 1), ("a-1", 0), ("b.c_d", 12)}
    error = """[STREAM_FAILED] Query [id = 5] terminated with exception: Job aborted
=== Streaming Query ===
Current Committed Offsets: {KafkaV2[Assign[a-0, a-1, a-1-0, b.c_d-12]]: {"a":{"0":5}}}
Caused by: org.apache.kafka.common.KafkaException: Received exception when fetching the next record from b.c_d-12. If
"""
    assert places_in(error, keys).keys() == {("b.c_d", 12)}
    assert places_in(error, keys)["b.c_d", 12].startswith(
        "org.apache.kafka.common.KafkaException: Received"
    )
    assert places_in("java.lang.IllegalStateException: a-1-0 and a-1.", keys).keys() == {
        ("a-1", 0),
        ("a", 1),
    }
    assert not places_in("no partition", keys)


def test_a_record_that_a_task_could_not_stage_names_its_partition() -> None:
    raised = (
        "mirrorlake.errors.StagingError: b.c_d-12 cannot be staged from offset 7, since its "
        "record cannot be: 1e18"
    )
    error = TASK.replace("mirrorlake.errors.MapError: the target's position of a-0 carries", raised)
    assert "from offset 7" in places_in(error, {("b.c_d", 12), ("a", 0)})["b.c_d", 12]


REFUSED = """org.apache.hadoop.hive.ql.metadata.HiveException: Unable to instantiate a client
Caused by: MetaException(message:Could not connect to meta store using any of the URIs provided. \
Most recent failure: org.apache.thrift.transport.TTransportException: java.net.ConnectException: Connection refused
\tat org.apache.thrift.transport.TSocket.open(TSocket.java:243)
Caused by: java.net.ConnectException: Connection refused
"""


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (REFUSED, "java.net.ConnectException: Connection refused"),
        (
            "org.apache.thrift.transport.TTransportException: java.net.SocketTimeoutException: "
            "Read timed out",
            "java.net.SocketTimeoutException: Read timed out",
        ),
        ("org.apache.thrift.transport.TTransportException", "the connection ended"),
    ],
)
def test_a_metastore_that_does_not_answer_is_known(trace: str, reason: str) -> None:
    """Spark's own text says only that a client could not be made; what lies behind is its cause."""
    error = AnalysisException("HiveException: Unable to instantiate a client")
    error._cause = RuntimeError(trace)  # type: ignore[attr-defined]
    assert metastore_silence(error) == reason
    told = metastore_error(error)
    assert isinstance(told, LakeError) and f"does not answer ({reason}); start it" in str(told)
    said = str(as_mirrorlake_error(error, "flow a->b"))
    assert said == f"flow a->b stopped: the Hive metastore does not answer ({reason})"


@pytest.mark.parametrize(
    "text", ["java.net.ConnectException: Connection refused", "HiveException: no such table"]
)
def test_other_errors_are_none_of_a_metastores(text: str) -> None:
    assert metastore_silence(RuntimeError(text)) is None
    assert metastore_error(RuntimeError(text)) is None


class Mute(Exception):
    """One whose text is no text."""

    def __str__(self) -> str:
        return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    "error", [AssertionError(), Mute(), RuntimeError("  \n "), KafkaException()]
)
def test_an_error_without_a_text_is_called_by_its_kind(error: Exception) -> None:
    """What makes a sentence of an error runs where an error is handled: it must not raise another
    one."""
    assert cause_of(error) == first_line(error) == type(error).__name__
    assert (
        str(as_mirrorlake_error(error, "flow a->b")) == f"flow a->b stopped: {type(error).__name__}"
    )
    assert not is_conflict(error)
    assert not places_in(causes_of(error), {("a", 0)})


def test_an_error_of_kafkas_speaks_for_itself() -> None:
    said = as_mirrorlake_error(
        KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN, "3/3 brokers are down")),
        "flow a->b",
    )
    assert str(said) == "flow a->b stopped: 3/3 brokers are down"


def test_no_error_at_all_is_unknown() -> None:
    assert cause_of(None) == "unknown error"


def test_a_library_that_is_missing_is_named_with_its_extra() -> None:
    told = as_mirrorlake_error(
        ModuleNotFoundError("No module named 'pyspark.sql'", name="pyspark.sql"), "landing"
    )
    assert isinstance(told, MissingExtra) and told.extra == "spark"
    assert (
        str(as_mirrorlake_error(ModuleNotFoundError("No module named 'x'", name="x"), "it"))
        == "it stopped: No module named 'x'"
    )
