"""What a transaction was refused for: one record, a topic, or nothing that it holds.

librdkafka fails a transaction with the first record, or partition, that is refused for good. All
later rows, in any partition, are refused only for that: purged from the queue (`_PURGE_QUEUE`), not
taken any more (`_STATE`), or in one batch with the refused record (`_INVALID_DIFFERENT_RECORD`,
KIP-467). So the code looks at all results before any counts.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from mirrorlake.errors import TargetRefused
from mirrorlake.kafka.access import topic_rights
from mirrorlake.kafka.error_classes import ErrorClass, class_of
from mirrorlake.produce.delivery import NAMED_CLASSES, Delivery
from mirrorlake.produce.record_producer import OffsetsUnknown
from mirrorlake.produce.spec import Target


class TopicDenied(Exception):
    """The target takes nothing of a topic that a transaction writes to. `names` maps its name at
    the source to that at the target; empty if the target does not say which topic. `right` is the
    missing operation if `error` is one of authorization."""

    def __init__(
        self, error: KafkaError, right: str, names: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(str(error))
        self.error, self.right, self.names = error, right, dict(names or {})


def check_refused(results: Sequence[Delivery], failure: Callable[[], KafkaError | None]) -> None:
    """Raise the reason if rows of a transaction were refused. `failure` returns the error that
    failed the transaction, None if it did not fail.

    Raises TargetRefused for records, TopicDenied for a topic, OffsetsUnknown if a record was
    refused and it is unknown which, KafkaException for what a fresh producer or time may help.
    """
    refused = [(result, refusal) for result in results if (refusal := result.refusal()) is not None]
    if not refused:
        return
    for result, refusal in refused:
        if refusal.kind is ErrorClass.RECORD and result.exact:
            raise result.refused(refusal)
    for result, refusal in refused:
        if refusal.kind is ErrorClass.TOPIC:
            plan = result.chunk.plan
            raise TopicDenied(refusal.error, "WRITE", {plan.topic: plan.target_topic})
    reason = failure() or refused[0][1].error
    if class_of(reason) is ErrorClass.TOPIC:
        # a partition could not even be added to the transaction
        raise TopicDenied(reason, "WRITE")
    kinds = [class_of(reason), *(refusal.kind for _, refusal in refused)]
    if ErrorClass.RECORD in kinds and not all(result.exact for result in results):
        raise OffsetsUnknown(refused=True)
    raise KafkaException(reason)


def is_reason_known(results: Sequence[Delivery]) -> bool | None:
    """Whether it is known by now what is refused; None where nothing was."""
    kinds = [
        refusal.kind for refusal in (result.refusal() for result in results) if refusal is not None
    ]
    return any(kind in NAMED_CLASSES for kind in kinds) if kinds else None


def topic_denied(error: KafkaException, right: str) -> TopicDenied | None:
    """The denial behind an error of a call that needs a right on topics; None if it is none."""
    cause = error.args[0]
    return TopicDenied(cause, right) if class_of(cause) is ErrorClass.TOPIC else None


def lacking_rights(target: Target, topics: Collection[str]) -> dict[str, str]:
    """The first right that the flow lacks on each of some target topics; topics that lack none are
    left out. Asks the target. Raises KafkaException."""
    rights_by_topic = topic_rights(AdminClient(dict(target.client)), topics)
    return {
        topic: right
        for topic, rights in rights_by_topic.items()
        for right in ("READ", "WRITE")
        if rights is not None and right not in rights
    }


def refused_again(error: Exception) -> bool:
    """Whether refused rows left a hole in the producer's sequence: see `ShardWriter.write`."""
    return isinstance(error, TargetRefused | TopicDenied) or (
        isinstance(error, OffsetsUnknown) and error.refused
    )
