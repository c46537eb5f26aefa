-- The newest sample of every partition of a flow, of those taken since a time, for a process that begins: at is in seconds
-- since 1970. Older files are not opened. Parameters: flow, since_ms.
SELECT topic, partition, unix_micros(max(sampled_at)) / 1e6D AS at,
       max_by(greatest(produced_end, source_start), sampled_at) AS produced, max_by(source_end, sampled_at) AS source_end,
       max_by(coalesce(lag_seconds, 0D), sampled_at) AS lag_seconds
FROM positions
WHERE flow = :flow AND sampled_at >= timestamp_millis(:since_ms) AND source_end IS NOT NULL AND produced_end IS NOT NULL
GROUP BY topic, partition
