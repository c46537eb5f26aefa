-- The newest sample of every partition of a flow, for a process that begins: at is in seconds since 1970.
-- Parameters: flow.
SELECT topic, partition, unix_micros(sampled_at) / 1e6D AS at, greatest(produced_end, source_start) AS produced,
       source_end, coalesce(sampled_lag_seconds, 0D) AS lag_seconds
FROM replication_lag
WHERE flow = :flow AND source_end IS NOT NULL AND produced_end IS NOT NULL
