-- The newest sample of every partition of a flow, of those taken since a time, for a process that begins: at is in seconds
-- since 1970. Older files are not opened; samples of a time to come are of a clock that was wrong, as in the view
-- `replication_lag`. Parameters: flow, since_ms.
SELECT topic, partition, unix_micros(sampled_at) / 1e6D AS at, source_start, source_end, staged_end, produced_end,
       target_end, lag_records, coalesce(lag_seconds, 0D) AS lag_seconds, target_topic, mapped_end, target_passed_end,
       target_generation, generation, source_high_watermark, transaction_since, transaction_producer_id,
       stalled_since
FROM (
  SELECT *, row_number() OVER (PARTITION BY topic, partition ORDER BY sampled_at DESC) AS nth
  FROM positions
  WHERE flow = :flow AND sampled_at >= timestamp_millis(:since_ms) AND sampled_at < current_timestamp() + INTERVAL 5 MINUTES
)
WHERE nth = 1
