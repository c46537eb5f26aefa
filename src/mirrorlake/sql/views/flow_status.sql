-- One row per flow: how far it is, how late, and whether something is open. Rates are those of the last minute; the
-- latencies are the highest of all batches of the ten minutes that ended with the newest one. Lag and latency are without
-- heartbeats (`objectives.heartbeat_topics`), which may wait for others before they are landed. heartbeat_age_seconds is how long ago the newest heartbeat was sent that came through to the target; it goes on growing while nothing comes
-- through. lag_seconds does so too, where a partition lagged when it was sampled last. state: incident (one is open),
-- not running (no sample for a minute, or three intervals), replicating, or idle (all is produced, and nothing but
-- heartbeats came for a minute). short_batches and long_batches are those of the last day that the driver produced
-- itself, and those that Spark's tasks did. parked are the records that the target refused, that the flow went on behind
-- and that were not sent since. A flow that an incident is open of has a row though it was never sampled and produced nothing:
-- it may wait for a cluster since it began. What was produced at a time to come, by more than two hosts may differ, is of a
-- clock that was wrong: it hides nothing that was produced since, nor counts as new.
CREATE OR REPLACE VIEW flow_status AS
WITH aside AS (SELECT flow, heartbeat_topics FROM objectives),
lag AS (
  SELECT lag.flow, count(DISTINCT topic) AS topics, count(*) AS partitions,
         sum(CASE WHEN coalesce(topic RLIKE heartbeat_topics, topic = 'heartbeats') THEN 0 ELSE lag_records END)
           AS lag_records,
         max(CASE WHEN coalesce(topic RLIKE heartbeat_topics, topic = 'heartbeats') THEN 0 ELSE lag_seconds END)
           AS lag_seconds,
         max(sampled_at) AS sampled_at, min(sample_age_seconds) AS sample_age_seconds,
         max(CASE WHEN is_sampled THEN 1 ELSE 0 END) AS is_sampled,
         sum(CASE WHEN coalesce(topic RLIKE heartbeat_topics, topic = 'heartbeats') THEN 0 ELSE lag_to_high_watermark END)
           AS lag_to_high_watermark
  FROM replication_lag AS lag LEFT JOIN aside ON aside.flow = lag.flow
  GROUP BY lag.flow
),
-- What was produced at a time to come is no sign of life.
produced AS (
  SELECT flow, topic, batch_id, record_count, byte_count, produced_at,
         CASE WHEN produced_at < current_timestamp() + INTERVAL 5 MINUTES THEN produced_at END AS past_at
  FROM latency
),
totals AS (
  SELECT produced.flow, max(batch_id) AS last_batch_id,
         coalesce(max(past_at), max(produced_at)) AS last_produced_at,
         sum(record_count) AS record_count,
         sum(byte_count) AS byte_count,
         sum(CASE WHEN past_at > current_timestamp() - INTERVAL 1 MINUTE THEN record_count ELSE 0 END) / 60
           AS records_per_second,
         sum(CASE WHEN past_at > current_timestamp() - INTERVAL 1 MINUTE THEN byte_count ELSE 0 END) / 60
           AS bytes_per_second,
         max(CASE WHEN NOT coalesce(topic RLIKE heartbeat_topics, topic = 'heartbeats') THEN past_at END)
           AS last_but_heartbeats
  FROM produced LEFT JOIN aside ON aside.flow = produced.flow
  GROUP BY produced.flow
),
ways AS (
  SELECT flow, sum(CASE WHEN way = 'short' THEN 1 ELSE 0 END) AS short_batches,
         sum(CASE WHEN way = 'long' THEN 1 ELSE 0 END) AS long_batches
  FROM (SELECT DISTINCT flow, batch_id, way FROM latency WHERE produced_at > current_timestamp() - INTERVAL 1 DAY)
  GROUP BY flow
),
recent AS (
  SELECT latency.flow, max(replication_p50_ms) AS replication_p50_ms, max(replication_p95_ms) AS replication_p95_ms,
         max(replication_p99_ms) AS replication_p99_ms
  FROM latency JOIN totals ON latency.flow = totals.flow LEFT JOIN aside ON aside.flow = latency.flow
  WHERE latency.produced_at > totals.last_produced_at - INTERVAL 10 MINUTES
    AND latency.produced_at <= totals.last_produced_at
    AND NOT coalesce(topic RLIKE heartbeat_topics, topic = 'heartbeats')
  GROUP BY latency.flow
),
-- When the newest heartbeat that arrived was sent, ms: a batch's newest record is the one with the least latency. None
-- was sent after it arrived, whatever its clock said.
heartbeat AS (
  SELECT flow, max(unix_millis(produced_at) - CASE WHEN replication_min_ms > 0 THEN replication_min_ms
                                                    WHEN replication_min_ms <= 0 THEN 0 END) AS sent_ms
  FROM latency
  WHERE topic = 'heartbeats' AND produced_at < current_timestamp() + INTERVAL 5 MINUTES
  GROUP BY flow
),
open AS (SELECT flow, count(*) AS open_incidents FROM open_incidents GROUP BY flow),
waiting AS (SELECT flow, count(*) AS parked FROM unsent_parked GROUP BY flow),
known AS (
  SELECT flow FROM lag
  UNION
  SELECT flow FROM totals
  UNION
  SELECT flow FROM open WHERE flow LIKE '%->%' AND flow NOT LIKE '%:%'
)
SELECT
  known.flow,
  lag.topics,
  lag.partitions,
  lag.lag_records,
  lag.lag_seconds,
  lag.sampled_at,
  totals.last_batch_id,
  totals.last_produced_at,
  totals.record_count,
  recent.replication_p50_ms,
  recent.replication_p99_ms,
  coalesce(open.open_incidents, 0) AS open_incidents,
  (unix_millis(current_timestamp()) - heartbeat.sent_ms) / 1000 AS heartbeat_age_seconds,
  CASE
    WHEN open.open_incidents > 0 THEN 'incident'
    WHEN coalesce(lag.is_sampled, 0) = 0 THEN 'not running'
    WHEN lag.lag_records > 0 OR totals.last_but_heartbeats > current_timestamp() - INTERVAL 1 MINUTE
      THEN 'replicating'
    ELSE 'idle'
  END AS state,
  lag.sample_age_seconds,
  recent.replication_p95_ms,
  totals.byte_count,
  coalesce(totals.records_per_second, 0) AS records_per_second,
  coalesce(totals.bytes_per_second, 0) AS bytes_per_second,
  coalesce(ways.short_batches, 0) AS short_batches,
  coalesce(ways.long_batches, 0) AS long_batches,
  coalesce(waiting.parked, 0) AS parked,
  lag.lag_to_high_watermark
FROM known
LEFT JOIN lag ON lag.flow = known.flow
LEFT JOIN totals ON totals.flow = known.flow
LEFT JOIN recent ON recent.flow = known.flow
LEFT JOIN ways ON ways.flow = known.flow
LEFT JOIN heartbeat ON heartbeat.flow = known.flow
LEFT JOIN open ON open.flow = known.flow
LEFT JOIN waiting ON waiting.flow = known.flow
