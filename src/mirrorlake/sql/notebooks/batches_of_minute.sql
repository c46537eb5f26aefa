-- The batches of one partition in one minute, the latest first. Parameters: flow, topic, partition, minute.
SELECT batch_id, produced_at, record_count, byte_count, landing_p50_ms, landing_p99_ms, replication_p50_ms,
       replication_p99_ms, replication_max_ms
FROM latency
WHERE flow = :flow AND topic = :topic AND partition = :partition
  AND date_trunc('MINUTE', produced_at) = CAST(:minute AS TIMESTAMP)
ORDER BY replication_p99_ms DESC NULLS LAST, batch_id
