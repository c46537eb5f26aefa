"""Records that Spark's own Kafka source cannot give, by their time: found, so that they stop their
partition alone.

It makes a TIMESTAMP of a record's time before it can be looked at, and fails the whole query where
that is none, without a word of which record it was (`KafkaRecordToRowConverter`). A native reading
has no such limit.
"""

from collections.abc import Mapping

from mirrorlake.kafka.records import first_records
from mirrorlake.offsets.positions import TopicAndPartition

#: The times that Spark's source gives as they are, ms since 1970: from 1900 on (Spark's
#: RebaseDateTime) to the last one of which the microseconds are a 64-bit number.
SPARK_FIRST_MS, SPARK_LAST_MS = -2_208_988_800_000, (2**63 - 1) // 1_000
#: Why one of before is not taken.
NOT_BY_SPARK = "its record has a time of before 1900, which Spark's Kafka source changes"


def beyond_spark(
    alias: str,
    settings: Mapping[str, str | int | bool],
    bounds: Mapping[TopicAndPartition, tuple[int, int]],
) -> dict[TopicAndPartition, str]:
    """The partitions that have a record with such a time within some offsets (first, and the one
    behind the last), and what is said of the first one. Raises ClusterUnreachable."""
    records = first_records(
        alias, settings, bounds, lambda ms: not SPARK_FIRST_MS <= ms <= SPARK_LAST_MS
    )
    return {
        key: f"it cannot be staged from offset {offset}, since its record there has a time of {ms} "
        "ms, which Spark's "
        "Kafka source cannot take"
        for key, (offset, ms) in records.items()
    }
