-- One row per partition of a flow: where it stands, how much was produced of it as far back as `latency` is kept
-- (`maintain.history_days`), the rates of the last minute, and the latencies in ms of the ten minutes that ended with its
-- newest batch. A partition that is gone from the source keeps its totals, without a sample; one that never had a record
-- has a sample without totals. It is stopped where an incident by which it waits, or its topic, is open, or an operator chose
-- so: of the mirror that it has now.
CREATE OR REPLACE VIEW partition_status AS
WITH produced AS (
  SELECT flow, topic, partition, batch_id, record_count, byte_count, produced_at,
         CASE WHEN produced_at < current_timestamp() + INTERVAL 5 MINUTES THEN produced_at END AS past_at
  FROM latency
),
totals AS (
  SELECT
    flow,
    topic,
    partition,
    sum(record_count) AS record_count,
    sum(byte_count) AS byte_count,
    max(batch_id) AS last_batch_id,
    coalesce(max(past_at), max(produced_at)) AS last_produced_at,
    sum(CASE WHEN past_at > current_timestamp() - INTERVAL 1 MINUTE THEN record_count ELSE 0 END) / 60
      AS records_per_second,
    sum(CASE WHEN past_at > current_timestamp() - INTERVAL 1 MINUTE THEN byte_count ELSE 0 END) / 60
      AS bytes_per_second
  FROM produced
  GROUP BY flow, topic, partition
),
recent AS (
  SELECT
    latency.flow,
    latency.topic,
    latency.partition,
    min(landing_min_ms) AS landing_min_ms,
    sum(landing_avg_ms * latency.record_count)
      / nullif(sum(CASE WHEN landing_avg_ms IS NOT NULL THEN latency.record_count END), 0) AS landing_avg_ms,
    max(landing_p50_ms) AS landing_p50_ms,
    max(landing_p95_ms) AS landing_p95_ms,
    max(landing_p99_ms) AS landing_p99_ms,
    max(landing_max_ms) AS landing_max_ms,
    min(replication_min_ms) AS replication_min_ms,
    sum(replication_avg_ms * latency.record_count)
      / nullif(sum(CASE WHEN replication_avg_ms IS NOT NULL THEN latency.record_count END), 0) AS replication_avg_ms,
    max(replication_p50_ms) AS replication_p50_ms,
    max(replication_p95_ms) AS replication_p95_ms,
    max(replication_p99_ms) AS replication_p99_ms,
    max(replication_max_ms) AS replication_max_ms
  FROM latency
  JOIN totals ON latency.flow = totals.flow AND latency.topic = totals.topic AND latency.partition = totals.partition
  WHERE latency.produced_at > totals.last_produced_at - INTERVAL 10 MINUTES
    AND latency.produced_at <= totals.last_produced_at
  GROUP BY latency.flow, latency.topic, latency.partition
),
stopped AS (
  SELECT DISTINCT incidents.flow, incidents.topic, incidents.partition
  FROM incidents LEFT JOIN replication_lag AS lag
    ON lag.flow = incidents.flow AND lag.topic = incidents.topic AND lag.partition = incidents.partition
  WHERE incidents.topic IS NOT NULL AND incidents.partition IS NOT NULL
    AND kind NOT IN ('content_differs', 'landing_gap')
    AND coalesce(incidents.target_topic = lag.target_topic, true) AND NOT EXISTS (
    SELECT 1 FROM target_generations AS target
    WHERE target.flow = incidents.flow AND target.topic = incidents.topic
      AND target.target_topic = coalesce(incidents.target_topic, target.target_topic)
      AND target.target_generation > incidents.target_generation)
    AND (incidents.resolved_at IS NULL OR incidents.resolution = 'stop' AND NOT EXISTS (
    SELECT 1 FROM generations
    WHERE source_cluster = split(incidents.flow, '->')[0] AND generations.topic = incidents.topic
      AND (generations.partition IS NULL OR generations.partition = incidents.partition)
      AND generations.generation > coalesce(incidents.generation, 0)))
),
stopped_topics AS (
  SELECT DISTINCT flow, topic
  FROM incidents
  WHERE kind IN ('topic_recreated', 'target_recreated', 'topic_refused', 'source_refused') AND topic IS NOT NULL AND partition IS NULL
    AND (resolved_at IS NULL OR resolution = 'stop' AND NOT EXISTS (
      SELECT 1 FROM generations
      WHERE source_cluster = split(incidents.flow, '->')[0] AND generations.topic = incidents.topic
        AND generations.partition IS NULL AND generations.generation > coalesce(incidents.generation, 0))
      AND NOT EXISTS (
      SELECT 1 FROM target_generations AS target
      WHERE target.flow = incidents.flow AND target.topic = incidents.topic AND incidents.kind = 'target_recreated'
        AND CASE WHEN target.target_topic <> incidents.target_topic THEN target.started_at > incidents.at
                 ELSE target.target_generation > coalesce(incidents.target_generation, 0) END))
)
SELECT
  coalesce(lag.flow, totals.flow) AS flow,
  coalesce(lag.topic, totals.topic) AS topic,
  coalesce(lag.partition, totals.partition) AS partition,
  lag.target_topic,
  CASE
    WHEN stopped.flow IS NOT NULL OR stopped_topics.flow IS NOT NULL THEN 'stopped'
    WHEN lag.flow IS NULL THEN 'gone'
    WHEN NOT lag.is_sampled THEN 'not running'
    WHEN lag.lag_records > 0 THEN 'behind'
    ELSE 'at the end'
  END AS state,
  lag.sampled_at,
  lag.sample_age_seconds,
  lag.source_start,
  lag.source_end,
  lag.staged_end,
  lag.produced_end,
  lag.target_end,
  lag.lag_records,
  lag.lag_seconds,
  coalesce(totals.record_count, 0) AS record_count,
  coalesce(totals.byte_count, 0) AS byte_count,
  coalesce(totals.records_per_second, 0) AS records_per_second,
  coalesce(totals.bytes_per_second, 0) AS bytes_per_second,
  totals.last_batch_id,
  totals.last_produced_at,
  recent.landing_min_ms,
  recent.landing_avg_ms,
  recent.landing_p50_ms,
  recent.landing_p95_ms,
  recent.landing_p99_ms,
  recent.landing_max_ms,
  recent.replication_min_ms,
  recent.replication_avg_ms,
  recent.replication_p50_ms,
  recent.replication_p95_ms,
  recent.replication_p99_ms,
  recent.replication_max_ms
FROM replication_lag AS lag
FULL OUTER JOIN totals ON lag.flow = totals.flow AND lag.topic = totals.topic AND lag.partition = totals.partition
LEFT JOIN recent
  ON recent.flow = totals.flow AND recent.topic = totals.topic AND recent.partition = totals.partition
LEFT JOIN stopped
  ON stopped.flow = coalesce(lag.flow, totals.flow) AND stopped.topic = coalesce(lag.topic, totals.topic)
  AND stopped.partition = coalesce(lag.partition, totals.partition)
LEFT JOIN stopped_topics
  ON stopped_topics.flow = coalesce(lag.flow, totals.flow) AND stopped_topics.topic = coalesce(lag.topic, totals.topic)
