"""What a topic's configs allow its brokers to delete: a comparison has to allow for it, and a
consumer that was away may have missed it."""

import time

from mirrorlake.kafka.values import TopicConfigs


def compacts(configs: TopicConfigs) -> bool:
    """Whether a topic is compacted."""
    value = configs.get("cleanup.policy")
    return value is not None and "compact" in (value.value or "")


def keeps_from(configs: TopicConfigs) -> int | None:
    """Retention may delete records of an older timestamp (ms), or all, if a size limits it."""
    settings = {
        name: configs[name].value
        for name in ("cleanup.policy", "retention.ms", "retention.bytes")
        if name in configs
    }
    policy = settings.get("cleanup.policy")
    if policy is not None and "delete" not in policy:  # compact, or, of Kafka 4.2, neither
        return None
    now = time.time_ns() // 1_000_000
    if int(settings.get("retention.bytes") or -1) >= 0:
        return now
    kept = int(settings.get("retention.ms") or -1)
    return None if kept < 0 else now - kept


def stamped_by_brokers(configs: TopicConfigs) -> bool:
    """Whether a topic's brokers write their own time into records (KIP-32), so that a record's age
    counts from when it was appended."""
    value = configs.get("message.timestamp.type")
    return value is not None and value.value == "LogAppendTime"


def keeps_deletions_ms(configs: TopicConfigs) -> int:
    """How long a compacted topic keeps tombstones, ms."""
    value = configs.get("delete.retention.ms")
    return 0 if value is None else int(value.value or 0)
