-- The newest sample of every partition of every flow.
CREATE OR REPLACE VIEW replication_lag AS
SELECT flow, topic, partition, target_topic, sampled_at, source_start, source_end, staged_end, produced_end, target_end,
       lag_records, lag_seconds
FROM (
  SELECT *, row_number() OVER (PARTITION BY flow, topic, partition ORDER BY sampled_at DESC) AS newest FROM positions
)
WHERE newest = 1
