"""What lies behind an error: the one line of a Python or JVM text that says most."""

import re

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from mirrorlake.errors import MapError, MirrorlakeError, ReplicationError

#: What a worker's thread may meet and try again after. A job that fails while its rows are on their way to the driver
#: comes as an error of py4j, not of Spark.
FAILURES = (MirrorlakeError, KafkaException, PySparkException, Py4JError)


def cause_of(error: BaseException | None) -> str:
    """The line of an error text that says most: what a worker raised, or the innermost cause."""
    text = str(error or "unknown error").strip()
    raised = [line for line in text.splitlines() if re.match(r"[\w.]*(Error|Exception|Refused): ", line)]
    causes = [line.split("Caused by: ", 1)[1] for line in text.splitlines() if "Caused by: " in line]
    return ((raised[:1] or causes[-1:] or text.splitlines()[:1])[0])[:500]


def causes_of(error: BaseException | None) -> str:
    """The texts of an error and of all that caused it: Spark's own often says only that a task failed."""
    texts: list[str] = []
    while error is not None and len(texts) < 20:
        # The text itself has no causes in it, and those of the JVM are without their types.
        texts += [str(error), str(getattr(error, "_stackTrace", None) or getattr(error, "_stacktrace", None) or "")]
        error = getattr(error, "_cause", None) or error.__cause__
    return "\nCaused by: ".join(text for text in texts if text)


def in_our_words(error: BaseException, what: str) -> MirrorlakeError:
    """An error of ours as it is, also when a task raised it; any other as one that says what stopped, and why."""
    if isinstance(error, MirrorlakeError):
        return error
    contradiction = re.search(r"^mirrorlake\.errors\.MapError: (.*)$", str(error), re.MULTILINE)
    if contradiction is not None:
        return MapError(contradiction[1])
    return ReplicationError(f"{what} stopped: {cause_of(error)}")
