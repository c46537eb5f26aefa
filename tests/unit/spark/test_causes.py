"""What is made of the errors that Spark hands over (spark/causes.py)."""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from mirrorlake.errors import MapError, ReplicationError, TargetRefused
from mirrorlake.spark.causes import FAILURES, cause_of, in_our_words

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
    assert issubclass(Py4JError, FAILURES)


def test_a_contradiction_that_a_task_found_is_known_as_one() -> None:
    problem = in_our_words(RuntimeError(TASK), "flow a->b")
    assert isinstance(problem, MapError)
    assert str(problem) == "the target's position of a-0 carries metadata that this version cannot read"


def test_an_error_of_ours_stays_as_it_is_and_others_name_their_cause() -> None:
    refusal = TargetRefused("no", topic="t")
    assert in_our_words(refusal, "flow a->b") is refusal
    other = in_our_words(RuntimeError("x\nCaused by: java.io.EOFException"), "flow a->b")
    assert type(other) is ReplicationError
    assert str(other) == "flow a->b stopped: java.io.EOFException"


def test_what_a_worker_raised_says_more_than_the_innermost_cause() -> None:
    assert cause_of(RuntimeError(TASK)).startswith("mirrorlake.errors.MapError: ")
