-- One row per flow: how far it is, how late, and whether something is open. heartbeat_age_seconds is how long ago the
-- newest heartbeat was sent that came through to the target; it goes on growing while nothing comes through.
CREATE OR REPLACE VIEW flow_status AS
WITH lag AS (
  SELECT flow, count(DISTINCT topic) AS topics, count(*) AS partitions, sum(lag_records) AS lag_records,
         max(lag_seconds) AS lag_seconds, max(sampled_at) AS sampled_at
  FROM replication_lag
  GROUP BY flow
),
recent AS (
  SELECT flow, max(batch_id) AS last_batch_id, max(produced_at) AS last_produced_at, sum(record_count) AS record_count
  FROM latency
  GROUP BY flow
),
last_minutes AS (
  SELECT flow, max(replication_p50_ms) AS replication_p50_ms, max(replication_p99_ms) AS replication_p99_ms
  FROM (
    SELECT flow, replication_p50_ms, replication_p99_ms,
           row_number() OVER (PARTITION BY flow, topic, partition ORDER BY batch_id DESC) AS newest
    FROM latency
  )
  WHERE newest = 1
  GROUP BY flow
),
-- When the newest heartbeat that arrived was sent, ms: a batch's newest record is the one with the least latency.
heartbeat AS (
  SELECT flow, max(unix_millis(produced_at) - replication_min_ms) AS sent_ms
  FROM latency
  WHERE topic = 'heartbeats'
  GROUP BY flow
),
open AS (SELECT flow, count(*) AS open_incidents FROM open_incidents GROUP BY flow)
SELECT
  coalesce(lag.flow, recent.flow) AS flow,
  lag.topics,
  lag.partitions,
  lag.lag_records,
  lag.lag_seconds,
  lag.sampled_at,
  recent.last_batch_id,
  recent.last_produced_at,
  recent.record_count,
  last_minutes.replication_p50_ms,
  last_minutes.replication_p99_ms,
  coalesce(open.open_incidents, 0) AS open_incidents,
  (unix_millis(current_timestamp()) - heartbeat.sent_ms) / 1000 AS heartbeat_age_seconds
FROM lag
FULL OUTER JOIN recent ON lag.flow = recent.flow
LEFT JOIN last_minutes ON last_minutes.flow = coalesce(lag.flow, recent.flow)
LEFT JOIN heartbeat ON heartbeat.flow = coalesce(lag.flow, recent.flow)
LEFT JOIN open ON open.flow = coalesce(lag.flow, recent.flow)
