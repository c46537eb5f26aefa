-- The newest sample of every partition of every flow. A partition that its flow has not sampled for five minutes, while
-- it sampled others, is gone from the source or from the selection, and left out. lag_seconds is how long the first
-- record that was not produced had been at the source; where a partition lagged and nobody has taken a sample for a
-- minute, since the flow does not run, the time since then is added. sampled_lag_seconds is without that.
CREATE OR REPLACE VIEW replication_lag AS
WITH newest AS (
  SELECT flow, topic, partition, max(sampled_at) AS sampled_at,
         max_by(struct(target_topic, source_start, source_end, staged_end, produced_end, target_end, lag_records,
                       lag_seconds), sampled_at) AS sample
  FROM positions
  GROUP BY flow, topic, partition
),
sampled AS (SELECT flow, max(sampled_at) AS at FROM newest GROUP BY flow),
aged AS (
  SELECT newest.*, (unix_millis(current_timestamp()) - unix_millis(sampled_at)) / 1000 AS sample_age_seconds
  FROM newest JOIN sampled ON newest.flow = sampled.flow
  WHERE sampled_at > sampled.at - INTERVAL 5 MINUTES
)
SELECT
  flow,
  topic,
  partition,
  sample.target_topic,
  sampled_at,
  sample.source_start,
  sample.source_end,
  sample.staged_end,
  sample.produced_end,
  sample.target_end,
  sample.lag_records,
  coalesce(sample.lag_seconds, 0)
    + CASE WHEN sample.lag_records > 0 AND sample_age_seconds > 60 THEN sample_age_seconds ELSE 0 END AS lag_seconds,
  sample.lag_seconds AS sampled_lag_seconds,
  sample_age_seconds
FROM aged
