"""What each error of Kafka's or librdkafka's is about, and so what helps: one table for reading and
writing.

Whether an error passes by itself depends on what it is about. A record or a topic is refused again
whenever it is tried; a producer's state ends with the producer; a cluster comes back. Codes below 0
are librdkafka's (`rdkafka.h`), the others the protocol's
(https://kafka.apache.org/protocol#protocol_error_codes).
"""

from collections.abc import Mapping
from enum import Enum

from confluent_kafka import KafkaError


class ErrorClass(Enum):
    """What an error is about."""

    RECORD = "record"
    """This record, or this batch of records: the others pass."""
    TOPIC = "topic"
    """The topic or partition, or what we may do with it: other topics pass."""
    PRODUCER = "producer"
    """This client's transaction, its sequence, its membership, or an earlier error of it: a fresh
    client, and again."""
    CLUSTER = "cluster"
    """The cluster is away or overloaded, or refuses us as a whole: again later."""
    OURSELVES = "ourselves"
    """A wrong use or setting of ours; also what is an event, and no error."""


_RECORD = (
    "INVALID_MSG",
    "INVALID_MSG_SIZE",
    "MSG_SIZE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
    "INVALID_TIMESTAMP",
    "INVALID_RECORD",
    "_BAD_MSG",
    "_BAD_COMPRESSION",
    "_KEY_SERIALIZATION",
    "_VALUE_SERIALIZATION",
    "_KEY_DESERIALIZATION",
    "_VALUE_DESERIALIZATION",
)
_TOPIC = (
    "UNKNOWN_TOPIC_OR_PART",
    "UNKNOWN_TOPIC_ID",
    "INCONSISTENT_TOPIC_ID",
    "TOPIC_EXCEPTION",
    "TOPIC_AUTHORIZATION_FAILED",
    "TOPIC_ALREADY_EXISTS",
    "INVALID_PARTITIONS",
    "INVALID_REPLICATION_FACTOR",
    "INVALID_REPLICA_ASSIGNMENT",
    "INVALID_CONFIG",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "POLICY_VIOLATION",
    "OFFSET_OUT_OF_RANGE",
    "REASSIGNMENT_IN_PROGRESS",
    "NO_REASSIGNMENT_IN_PROGRESS",
    "ELECTION_NOT_NEEDED",
    "_UNKNOWN_TOPIC",
    "_UNKNOWN_PARTITION",
    "_NO_OFFSET",
    "_AUTO_OFFSET_RESET",
    "_LOG_TRUNCATION",
)
#: The first group follows an error of another record or call: it says nothing of its own record.
_PRODUCER = (
    "_PURGE_QUEUE",
    "_PURGE_INFLIGHT",
    "_STATE",
    "_INVALID_DIFFERENT_RECORD",
    "_DESTROY",
    "_DESTROY_BROKER",
    "OPERATION_NOT_ATTEMPTED",
    "TRANSACTION_ABORTABLE",
    "_FATAL",
    "_FENCED",
    "_INCONSISTENT",
    "_GAPLESS_GUARANTEE",
    "_OUTDATED",
    "_CONFLICT",
    "_RETRY",
    "_PREV_IN_PROGRESS",
    "_MAX_POLL_EXCEEDED",
    "_ASSIGNMENT_LOST",
    "_APPLICATION",
    "_INTR",
    "PRODUCER_FENCED",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_PRODUCER_ID_MAPPING",
    "UNKNOWN_PRODUCER_ID",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "DUPLICATE_SEQUENCE_NUMBER",
    "INVALID_TXN_STATE",
    "CONCURRENT_TRANSACTIONS",
    "TRANSACTION_COORDINATOR_FENCED",
    "UNSTABLE_OFFSET_COMMIT",
    "ILLEGAL_GENERATION",
    "UNKNOWN_MEMBER_ID",
    "MEMBER_ID_REQUIRED",
    "REBALANCE_IN_PROGRESS",
    "FENCED_INSTANCE_ID",
    "UNRELEASED_INSTANCE_ID",
    "FENCED_MEMBER_EPOCH",
    "STALE_MEMBER_EPOCH",
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "INVALID_RECORD_STATE",
    "SHARE_SESSION_NOT_FOUND",
    "INVALID_SHARE_SESSION_EPOCH",
    "FENCED_STATE_EPOCH",
)
_CLUSTER = (
    "_FAIL",
    "_TRANSPORT",
    "_CRIT_SYS_RESOURCE",
    "_RESOLVE",
    "_MSG_TIMED_OUT",
    "_ALL_BROKERS_DOWN",
    "_TIMED_OUT",
    "_TIMED_OUT_QUEUE",
    "_QUEUE_FULL",
    "_ISR_INSUFF",
    "_SSL",
    "_AUTHENTICATION",
    "_WAIT_COORD",
    "_WAIT_CACHE",
    "_UNKNOWN_BROKER",
    "_PARTIAL",
    "_UNSUPPORTED_FEATURE",
    "_UNDERFLOW",
    "UNKNOWN",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "REQUEST_TIMED_OUT",
    "BROKER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "STALE_CTRL_EPOCH",
    "NETWORK_EXCEPTION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NOT_CONTROLLER",
    "KAFKA_STORAGE_ERROR",
    "LOG_DIR_NOT_FOUND",
    "LISTENER_NOT_FOUND",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "STALE_BROKER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "PREFERRED_LEADER_NOT_AVAILABLE",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE",
    "THROTTLING_QUOTA_EXCEEDED",
    "GROUP_MAX_SIZE_REACHED",
    "REBOOTSTRAP_REQUIRED",
    "UNSUPPORTED_VERSION",
    "SHARE_SESSION_LIMIT_REACHED",
    "TOPIC_DELETION_DISABLED",
    "INCONSISTENT_VOTER_SET",
    "INVALID_UPDATE_VERSION",
    "FEATURE_UPDATE_FAILED",
    "INVALID_REGISTRATION",
    "MISMATCHED_ENDPOINT_TYPE",
    "UNSUPPORTED_ENDPOINT_TYPE",
    "UNKNOWN_CONTROLLER_ID",
    "INVALID_VOTER_KEY",
    "DUPLICATE_VOTER",
    "VOTER_NOT_FOUND",
    "CLUSTER_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "SASL_AUTHENTICATION_FAILED",
    "UNSUPPORTED_SASL_MECHANISM",
    "ILLEGAL_SASL_STATE",
    "SECURITY_DISABLED",
    "DELEGATION_TOKEN_AUTH_DISABLED",
    "DELEGATION_TOKEN_NOT_FOUND",
    "DELEGATION_TOKEN_OWNER_MISMATCH",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    "DELEGATION_TOKEN_EXPIRED",
    "INVALID_PRINCIPAL_TYPE",
    "PRINCIPAL_DESERIALIZATION_FAILURE",
    "UNACCEPTABLE_CREDENTIAL",
)
_OURSELVES = (
    "_FS",
    "_INVALID_ARG",
    "_UNKNOWN_GROUP",
    "_EXISTING_SUBSCRIPTION",
    "_UNKNOWN_PROTOCOL",
    "_NOT_IMPLEMENTED",
    "_READ_ONLY",
    "_NOENT",
    "_INVALID_TYPE",
    "_NOT_CONFIGURED",
    "INVALID_REQUIRED_ACKS",
    "INVALID_REQUEST",
    "INVALID_TRANSACTION_TIMEOUT",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "OFFSET_METADATA_TOO_LARGE",
    "INVALID_COMMIT_OFFSET_SIZE",
    "INVALID_GROUP_ID",
    "INVALID_SESSION_TIMEOUT",
    "INCONSISTENT_GROUP_PROTOCOL",
    "NON_EMPTY_GROUP",
    "GROUP_ID_NOT_FOUND",
    "GROUP_SUBSCRIBED_TO_TOPIC",
    "UNSUPPORTED_ASSIGNOR",
    "INVALID_REGULAR_EXPRESSION",
    "RESOURCE_NOT_FOUND",
    "DUPLICATE_RESOURCE",
    "UNKNOWN_SUBSCRIPTION_ID",
    "TELEMETRY_TOO_LARGE",
    "STREAMS_INVALID_TOPOLOGY",
    "STREAMS_INVALID_TOPOLOGY_EPOCH",
    "STREAMS_TOPOLOGY_FENCED",
    "NO_ERROR",
    "_PARTITION_EOF",
    "_NODE_UPDATE",
    "_IN_PROGRESS",
    "_ASSIGN_PARTITIONS",
    "_REVOKE_PARTITIONS",
    "_NOOP",
)

#: The class of each error by its name; one that the installed librdkafka lacks is of a newer one.
NAMES: Mapping[ErrorClass, tuple[str, ...]] = {
    ErrorClass.RECORD: _RECORD,
    ErrorClass.TOPIC: _TOPIC,
    ErrorClass.PRODUCER: _PRODUCER,
    ErrorClass.CLUSTER: _CLUSTER,
    ErrorClass.OURSELVES: _OURSELVES,
}
#: The class of each code.
CLASSES: Mapping[int, ErrorClass] = {
    getattr(KafkaError, name): kind
    for kind, names in NAMES.items()
    for name in names
    if hasattr(KafkaError, name)
}


def class_of(error: KafkaError | int) -> ErrorClass:
    """The class of an error, or of its code.

    A fatal error has ended its client, so it is the client's whatever the code says, unless the
    cluster refuses us. A code that is not in the table is the cluster's: what is tried again later
    is not lost.
    """
    code = error if isinstance(error, int) else int(error.code())
    kind = CLASSES.get(code, ErrorClass.CLUSTER)
    if not isinstance(error, int) and error.fatal() and kind is not ErrorClass.CLUSTER:
        return ErrorClass.PRODUCER
    return kind
