-- One minute, partition by partition, the latest first; producing_p99_ms is what came after landing, roughly.
-- Parameters: flow, topic (or empty: all but heartbeats), minute.
SELECT topic, partition, record_count, landing_p99_ms, replication_p99_ms,
       replication_p99_ms - landing_p99_ms AS producing_p99_ms, replication_max_ms
FROM partition_minutes
WHERE flow = :flow
  AND (topic = :topic OR :topic = '' AND NOT topic RLIKE
    (SELECT coalesce(max(heartbeat_topics), '^heartbeats$') FROM objectives WHERE flow = :flow))
  AND minute = CAST(:minute AS TIMESTAMP)
ORDER BY replication_p99_ms DESC NULLS LAST, topic, partition
