"""The causes of an error that Spark hands over. The only module that parses texts of Spark and
Delta.

An error of Delta's or a query's source reaches the driver as text of one of py4j or Spark Connect:
without class or attributes. What our own tasks raise keeps these (spark/tasks.py).
"""

import re
from collections.abc import Collection
from errno import EDQUOT, ENOSPC

from confluent_kafka import KafkaError, KafkaException

from mirrorlake.errors import (
    AuthenticationFailed,
    ClusterUnreachable,
    ClusterUnusable,
    LakeError,
    MirrorlakeError,
    ReplicationError,
    text_of,
)
from mirrorlake.extras import missing_by
from mirrorlake.offsets.positions import TopicAndPartition

#: Errors of a landing query's source in a task, by the start of the last line of their traceback.
_FROM_SOURCE: dict[str, type[ClusterUnusable]] = {
    "mirrorlake.errors.AuthenticationFailed": AuthenticationFailed,
    "mirrorlake.errors.ClusterUnreachable": ClusterUnreachable,
}
#: Delta's conditions for a commit that another one came before.
_CONFLICTS = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED")
#: Lines of an error that name a cause; others hold the query's plan, with every partition.
_CAUSE = re.compile(r"(?:^|: |by: )[\w.$]*(?:Exception|Error)(?:: |\{)")
#: Texts of Hive's client when its metastore does not answer, or no longer does; then the reason.
_METASTORE = ("Could not connect to meta store", "org.apache.thrift.transport.TTransportException")
_SILENCE = re.compile(r"java\.net\.\w+(?:: [^\n]+)?")
_PLACE = re.compile(r"[A-Za-z0-9._-]+-\d+")


def cause_of(error: BaseException | None) -> str:
    """The most telling line: what a worker raised, or the innermost cause. Never raises."""
    lines = text_of(error).splitlines()
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Refused): ", line)]
    causes = [line.split("Caused by: ", 1)[1] for line in lines if "Caused by: " in line]
    return (raised[:1] or causes[-1:] or lines[:1])[0][:500]


def causes_of(error: BaseException | None) -> str:
    """The texts of an error and all its causes: Spark's own often says only that a task failed."""
    texts: list[str] = []
    while error is not None and len(texts) < 20:
        # The text itself does not include its causes, and those of the JVM lack their types.
        texts += [
            text_of(error),
            str(getattr(error, "_stackTrace", None) or getattr(error, "_stacktrace", None) or ""),
        ]
        error = getattr(error, "_cause", None) or error.__cause__
    return "\nCaused by: ".join(text for text in texts if text)


def as_mirrorlake_error(error: BaseException, what: str) -> MirrorlakeError:
    """An error of ours as it is, also if a landing query's source raised it; a missing library as
    the extra that brings it; any other as an error that names what stopped, and why."""
    if isinstance(error, MirrorlakeError):
        return error
    if isinstance(error, ModuleNotFoundError) and (missing := missing_by(error)) is not None:
        return missing
    return _raised_by_source(error) or ReplicationError(f"{what} stopped: {message_of(error)}")


def message_of(error: BaseException) -> str:
    """An error's text as a part of a sentence: Kafka's own words if it is one of Kafka's."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        return str(error.args[0].str())
    if (reason := metastore_silence(error)) is not None:
        return f"the Hive metastore does not answer ({reason})"
    if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
        return f"{cause_of(error)}; make room on the disk of the lake, or of temporary files"
    return cause_of(error)


def _raised_by_source(error: BaseException) -> ClusterUnusable | None:
    """The error of a landing query's source, recognized in the text that Spark makes of it."""
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
    """Why Hive's metastore did not answer, in Java's words; None for an error of other cause."""
    text = causes_of(error)
    if not any(words in text for words in _METASTORE):
        return None
    reason = _SILENCE.search(text)
    return reason[0][:200] if reason is not None else "the connection ended"


def is_conflict(error: BaseException) -> bool:
    """Whether Delta refused a commit because another one came first: it may be tried again."""
    return any(name in text_of(error) for name in _CONFLICTS)


def places_in(error: str, keys: Collection[TopicAndPartition]) -> dict[TopicAndPartition, str]:
    """The partitions that causes in an error's text name, as `topic-partition`, with reasons."""
    names = {f"{topic}-{partition}": (topic, partition) for topic, partition in keys}
    reasons: dict[TopicAndPartition, str] = {}
    for line in error.splitlines():
        if _CAUSE.search(line):
            for word in _PLACE.findall(line):
                # A name at the end of a sentence includes the full stop.
                name = word if word in names else word.rstrip(".")
                if name in names:
                    reasons[names[name]] = line.removeprefix("Caused by: ")[:500]
    return reasons


def metastore_error(error: BaseException) -> LakeError | None:
    """The error for an exception of Spark's that comes from a metastore which does not answer, or
    no longer does; None for any other. Never raises."""
    reason = metastore_silence(error)
    if reason is None:
        return None
    from mirrorlake.spark.session import metastore_address  # Spark is imported: it raised the error

    address = metastore_address()
    return LakeError(
        f"the Hive metastore{f' at {address}' if address else ''} of the Spark session does not "
        f"answer ({reason}); start it, or let hive.metastore.uris in the session's settings "
        "(spark-defaults.conf, hive-site.xml) name one that this machine reaches"
    )
