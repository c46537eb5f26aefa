-- From the time at which control asked the source for a group's position to its row in the lake, in ms, per minute of one
-- group and partition. Rows that were not read at the source (a move, what became of one at the target) are left out.
CREATE OR REPLACE VIEW checkpoint_latency AS
SELECT
  flow,
  group_id,
  topic,
  partition,
  date_trunc('MINUTE', checkpointed_at) AS minute,
  count(*) AS checkpoint_count,
  min(latency_ms) AS latency_min_ms,
  avg(latency_ms) AS latency_avg_ms,
  percentile(latency_ms, 0.5) AS latency_p50_ms,
  percentile(latency_ms, 0.95) AS latency_p95_ms,
  percentile(latency_ms, 0.99) AS latency_p99_ms,
  max(latency_ms) AS latency_max_ms
FROM (
  SELECT *, unix_millis(checkpointed_at) - unix_millis(read_at) AS latency_ms FROM checkpoints WHERE read_at IS NOT NULL
)
GROUP BY flow, group_id, topic, partition, date_trunc('MINUTE', checkpointed_at)
