-- Where every partition of every flow is. A sample holds until the next one, so sampled_at is when the flow was sampled
-- last. A partition that could not be sampled any more is left out after five minutes, in which it stands as it was.
-- lag_seconds is how long the first record that was not produced had been at the source by sampled_at; where a partition
-- lagged and the flow does not run (no sample came for a minute, or for three intervals), the time since then is added.
-- sampled_lag_seconds is without that. lag_records counts up to the last stable offset, lag_to_high_watermark to the end of
-- the log: what lies in between is in, or behind, a transaction that is open, since transaction_since as far as was seen. Reads when samples of the last 30 days were taken, and of the samples those of a
-- flow's last 65 minutes: in an hour each partition is written. A flow that no process ran for 30 days has no row. A sample of
-- a time to come, by more than two hosts may differ, is of a clock that was wrong, and hides none of those taken since.
CREATE OR REPLACE VIEW replication_lag AS
WITH signs AS (
  SELECT flow, max(sampled_at) AS sampled_at,
         max_by(greatest(60, 3 * coalesce(interval_seconds, 10)), sampled_at) AS quiet_seconds
  FROM positions
  WHERE sampled_at >= current_timestamp() - INTERVAL 30 DAYS AND sampled_at < current_timestamp() + INTERVAL 5 MINUTES
  GROUP BY flow
),
newest AS (
  SELECT positions.flow, topic, partition, signs.sampled_at AS sign_at, quiet_seconds,
         max(positions.sampled_at) AS noted_at,
         max(CASE WHEN source_end IS NOT NULL THEN positions.sampled_at END) AS known_at,
         max_by(struct(target_topic, source_start, source_end, staged_end, produced_end, target_end, lag_records,
                       lag_seconds, source_high_watermark, transaction_since, transaction_producer_id),
                CASE WHEN source_end IS NOT NULL THEN positions.sampled_at END) AS sample
  FROM positions JOIN signs ON signs.flow = positions.flow
  WHERE positions.sampled_at >= current_timestamp() - INTERVAL 31 DAYS
    AND positions.sampled_at > signs.sampled_at - INTERVAL 65 MINUTES AND positions.sampled_at <= signs.sampled_at
  GROUP BY positions.flow, topic, partition, signs.sampled_at, quiet_seconds
),
held AS (
  SELECT flow, topic, partition, sample, sign_at, quiet_seconds, known_at,
         CASE WHEN noted_at = known_at THEN sign_at ELSE noted_at END AS sampled_at
  FROM newest
),
aged AS (
  SELECT *, (unix_millis(current_timestamp()) - unix_millis(sampled_at)) / 1000 AS sample_age_seconds,
         coalesce(sample.lag_seconds, 0)
           + CASE WHEN sample.lag_records > 0 THEN (unix_millis(sampled_at) - unix_millis(known_at)) / 1000 ELSE 0 END
           AS sampled_lag_seconds
  FROM held
  WHERE sampled_at > sign_at - INTERVAL 5 MINUTES
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
  sampled_lag_seconds
    + CASE WHEN sample.lag_records > 0 AND sample_age_seconds > quiet_seconds THEN sample_age_seconds ELSE 0 END
    AS lag_seconds,
  sampled_lag_seconds,
  sample_age_seconds,
  sample_age_seconds <= quiet_seconds AS is_sampled,
  sample.source_high_watermark,
  greatest(0L, coalesce(sample.source_high_watermark, sample.source_end)
               - greatest(sample.produced_end, sample.source_start)) AS lag_to_high_watermark,
  sample.transaction_since,
  sample.transaction_producer_id
FROM aged
