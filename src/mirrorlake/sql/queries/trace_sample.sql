-- The newest sample of a partition in a time. Parameters: flow, topic, partition, generation (of its topic; of any: -1),
-- since_ms, until_ms.
SELECT sampled_at, source_start, source_end, source_high_watermark, transaction_since, staged_end, produced_end, lag_records,
       target_topic
FROM positions
WHERE flow = :flow AND topic = :topic AND partition = :partition
  AND source_end IS NOT NULL AND (:generation < 0 OR coalesce(generation, 0) = :generation)
  AND sampled_at BETWEEN timestamp_millis(:since_ms) AND timestamp_millis(:until_ms)
ORDER BY sampled_at DESC
LIMIT 1
