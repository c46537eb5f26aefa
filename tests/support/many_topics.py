"""300 topics, each with its own config."""

from mirrorlake.devtools.bench.scale import wait_until_listed
from mirrorlake.kafka.admin import ClusterAdmin
from mirrorlake.kafka.values import TopicInfo

TOPICS, PARTITIONS = 300, 1_000


def create_many(admin: ClusterAdmin, prefix: str) -> list[TopicInfo]:
    """Create 300 topics with 1,000 partitions in all, each with its own config, and wait until the
    brokers list all: the controller acknowledges them before that.

    Returns them.
    """
    few, more = divmod(PARTITIONS, TOPICS)
    topics = [
        TopicInfo(
            f"{prefix}{number:03}",
            few + (number < more),
            1,
            {"retention.bytes": str(10**9 + number)},
        )
        for number in range(TOPICS)
    ]
    admin.create_topics(topics)
    wait_until_listed(admin, [topic.name for topic in topics])
    return topics
