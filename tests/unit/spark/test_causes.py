"""What is made of the errors that Spark hands over (spark/causes.py)."""

import pytest
from confluent_kafka import KafkaError, KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from mirrorlake.errors import (
    FilesUnreadable,
    LayoutError,
    MapError,
    MissingExtra,
    PlanOutdated,
    ReplicationError,
    TargetRefused,
    first_line,
)
from mirrorlake.spark.causes import (
    as_mirrorlake_error,
    cause_of,
    causes_of,
    is_conflict,
    places_in,
    raised_by_task,
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


def test_a_contradiction_that_a_task_found_is_known_as_one() -> None:
    problem = as_mirrorlake_error(RuntimeError(TASK), "flow a->b")
    assert isinstance(problem, MapError)
    assert (
        str(problem)
        == "the target's position of a-0 carries metadata that this version cannot read"
    )


def test_a_plan_that_is_outdated_is_told_alike_whoever_ran_the_task() -> None:
    by_spark = as_mirrorlake_error(Py4JError(TASK.replace("MapError", "PlanOutdated")), "flow a->b")
    assert isinstance(by_spark, PlanOutdated) and not isinstance(by_spark, ReplicationError), (
        "it is tried again"
    )


def test_an_error_of_ours_stays_as_it_is_and_others_name_their_cause() -> None:
    refusal = TargetRefused("no", topic="t")
    assert as_mirrorlake_error(refusal, "flow a->b") is refusal
    other = as_mirrorlake_error(RuntimeError("x\nCaused by: java.io.EOFException"), "flow a->b")
    assert type(other) is ReplicationError
    assert str(other) == "flow a->b stopped: java.io.EOFException"


def test_what_a_worker_raised_says_more_than_the_innermost_cause() -> None:
    assert cause_of(RuntimeError(TASK)).startswith("mirrorlake.errors.MapError: ")


@pytest.mark.parametrize(
    "kind", [MapError, PlanOutdated, LayoutError, FilesUnreadable, FileNotFoundError]
)
def test_what_a_task_raised_for_the_driver_to_go_by_is_known_by_its_class(
    kind: type[Exception],
) -> None:
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raised = raised_by_task(Py4JError(TASK.replace("mirrorlake.errors.MapError", name)))
    assert type(raised) is kind
    assert (
        str(raised) == "the target's position of a-0 carries metadata that this version cannot read"
    )


def test_a_name_that_is_only_spoken_of_is_not_what_a_task_raised() -> None:
    other = Py4JError(
        TASK.replace("mirrorlake.errors.MapError: ", "ValueError: LayoutError, FileNotFoundError: ")
    )
    assert raised_by_task(other) is other
    ours = ReplicationError("x\nFileNotFoundError: y")
    assert raised_by_task(ours) is ours


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
    assert raised_by_task(error) is error and not is_conflict(error)
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
