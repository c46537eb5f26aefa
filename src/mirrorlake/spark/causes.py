"""What lies behind an error that Spark hands over. The only place that reads texts of Spark's, and
of Delta's.

An error of Delta's or of a query's source comes to the driver as the text of an error of py4j, or
of Spark Connect: it has no class or attributes that one could go by. What our own tasks raise does
(spark/tasks.py).
"""

import re
from collections.abc import Collection
from errno import EDQUOT, ENOSPC

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import (
    AuthenticationFailed,
    ClusterUnreachable,
    ClusterUnusable,
    MirrorlakeError,
    ReplicationError,
    text_of,
)
from mirrorlake.extras import missing_by
from mirrorlake.offsets.positions import TopicAndPartition

#: What the source of a landing query raises in a task, as the last line of its traceback begins.
_FROM_SOURCE: dict[str, type[ClusterUnusable]] = {
    "mirrorlake.errors.AuthenticationFailed": AuthenticationFailed,
    "mirrorlake.errors.ClusterUnreachable": ClusterUnreachable,
}
#: Conditions of Delta where another commit came in between.
_CONFLICTS = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED")
#: The lines of an error that say why; others hold the whole plan of the query, with every
#: partition's name.
_CAUSE = re.compile(r"(?:^|: |by: )[\w.$]*(?:Exception|Error)(?:: |\{)")
#: What Hive's client says where its metastore does not answer, or does not any more; then why.
_METASTORE = ("Could not connect to meta store", "org.apache.thrift.transport.TTransportException")
_SILENCE = re.compile(r"java\.net\.\w+(?:: [^\n]+)?")
_PLACE = re.compile(r"[A-Za-z0-9._-]+-\d+")


def cause_of(error: BaseException | None) -> str:
    """The line of an error text that says most: what a worker raised, or the innermost cause. Never
    raises."""
    lines = text_of(error).splitlines()
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Refused): ", line)]
    causes = [line.split("Caused by: ", 1)[1] for line in lines if "Caused by: " in line]
    return (raised[:1] or causes[-1:] or lines[:1])[0][:500]


def causes_of(error: BaseException | None) -> str:
    """The texts of an error and of all that caused it: Spark's own often says only that a task
    failed."""
    texts: list[str] = []
    while error is not None and len(texts) < 20:
        # The text itself has no causes in it, and those of the JVM are without their types.
        texts += [
            text_of(error),
            str(getattr(error, "_stackTrace", None) or getattr(error, "_stacktrace", None) or ""),
        ]
        error = getattr(error, "_cause", None) or error.__cause__
    return "\nCaused by: ".join(text for text in texts if text)


def as_mirrorlake_error(error: BaseException, what: str) -> MirrorlakeError:
    """An error of ours as it is, also when a landing query's source raised it; a library that is
    missing by the extra that brings it; any other as one that says what stopped, and why."""
    if isinstance(error, MirrorlakeError):
        return error
    if isinstance(error, ModuleNotFoundError) and (missing := missing_by(error)) is not None:
        return missing
    return _raised_by_source(error) or ReplicationError(f"{what} stopped: {message_of(error)}")


def message_of(error: BaseException) -> str:
    """What an error says, as a part of a sentence: Kafka's own words where it is one of Kafka's."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return str(error.args[0].str())
    if (reason := metastore_silence(error)) is not None:
        return f"the Hive metastore does not answer ({reason})"
    if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
        return f"{cause_of(error)}; make room on the disk of the lake, or of temporary files"
    return cause_of(error)


def _raised_by_source(error: BaseException) -> ClusterUnusable | None:
    """What the source of a landing query raised, by the text that Spark makes of it."""
    for name, kind in _FROM_SOURCE.items():
        match = re.search(rf"^{re.escape(name)}: (.*)$", text_of(error), re.MULTILINE)
        if match is not None:
            return kind(match[1], alias=_alias(match[1]))
    return None


def _alias(text: str) -> str:
    """The cluster that a sentence of ours names."""
    match = re.search(r"\bcluster (\S+)", text)
    return match[1] if match is not None else ""


def metastore_silence(error: BaseException) -> str | None:
    """Why Hive's metastore did not answer, in Java's words, where that is what an error comes of;
    None for any other."""
    text = causes_of(error)
    if not any(words in text for words in _METASTORE):
        return None
    reason = _SILENCE.search(text)
    return reason[0][:200] if reason is not None else "the connection ended"


def is_conflict(error: BaseException) -> bool:
    """Whether Delta refused a commit since another one came in between: it may be tried again."""
    return any(name in text_of(error) for name in _CONFLICTS)


def places_in(error: str, keys: Collection[TopicAndPartition]) -> dict[TopicAndPartition, str]:
    """The partitions that the causes in an error's text name, as `topic-partition`, each with the
    reason."""
    names = {f"{topic}-{partition}": (topic, partition) for topic, partition in keys}
    reasons: dict[TopicAndPartition, str] = {}
    for line in error.splitlines():
        if _CAUSE.search(line):
            for word in _PLACE.findall(line):
                # A name at the end of a sentence has its full stop.
                name = word if word in names else word.rstrip(".")
                if name in names:
                    reasons[names[name]] = line.removeprefix("Caused by: ")[:500]
    return reasons
