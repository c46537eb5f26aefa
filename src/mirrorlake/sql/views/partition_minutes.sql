-- As replication_latency and throughput, per minute and partition: records, bytes (of keys and values), rates, and both
-- latencies in ms. Percentiles are the highest of the minute's batches.
CREATE OR REPLACE VIEW partition_minutes AS
SELECT
  flow,
  topic,
  partition,
  date_trunc('MINUTE', produced_at) AS minute,
  sum(record_count) AS record_count,
  sum(byte_count) AS byte_count,
  sum(record_count) / 60 AS records_per_second,
  sum(byte_count) / 60 AS bytes_per_second,
  min(landing_min_ms) AS landing_min_ms,
  sum(landing_avg_ms * record_count)
    / nullif(sum(CASE WHEN landing_avg_ms IS NOT NULL THEN record_count END), 0) AS landing_avg_ms,
  max(landing_p50_ms) AS landing_p50_ms,
  max(landing_p95_ms) AS landing_p95_ms,
  max(landing_p99_ms) AS landing_p99_ms,
  max(landing_max_ms) AS landing_max_ms,
  min(replication_min_ms) AS replication_min_ms,
  sum(replication_avg_ms * record_count)
    / nullif(sum(CASE WHEN replication_avg_ms IS NOT NULL THEN record_count END), 0) AS replication_avg_ms,
  max(replication_p50_ms) AS replication_p50_ms,
  max(replication_p95_ms) AS replication_p95_ms,
  max(replication_p99_ms) AS replication_p99_ms,
  max(replication_max_ms) AS replication_max_ms
FROM latency
GROUP BY flow, topic, partition, date_trunc('MINUTE', produced_at)
