"""Why a client of a cluster gives nothing: what it complains of, and what is raised when partitions
that are read are silent."""

from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException


class ClusterSilent(KafkaException):  # type: ignore[misc]
    """Raised when no broker of a cluster answers: it is about no partition. What the client
    complained of last is its error."""


class Complaints:
    """What a client complains of, which is about no partition: `error_cb` of confluent-kafka's."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None

    def note(self, error: KafkaError) -> None:
        """Called by the client. That all brokers are away says less than why."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self.last is None:
            self.last = error


def no_record(
    places: Sequence[str], patience_seconds: float, complaint: KafkaError | None
) -> KafkaException:
    """The error for partitions, by name, that gave nothing for so long although brokers answer."""
    text = (
        f"{', '.join(places[:3])} gave no record for {patience_seconds:.0f} s, of {len(places)} "
        "that are read"
    )
    if complaint is not None:
        text = f"{text}; the client says: {complaint.str()}"
    return KafkaException(KafkaError(KafkaError._TIMED_OUT, text))
