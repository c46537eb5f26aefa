-- The partitions that are furthest behind; heartbeats, which wait for each other, aside. Parameters: flow.
SELECT topic, partition, state, lag_records, lag_seconds, record_count, records_per_second, replication_p99_ms,
       last_produced_at
FROM partition_status
WHERE flow = :flow
  AND NOT topic RLIKE (SELECT coalesce(max(heartbeat_topics), '^heartbeats$') FROM objectives WHERE flow = :flow)
ORDER BY lag_seconds DESC NULLS LAST, lag_records DESC, record_count DESC, topic, partition
LIMIT 20
