-- Lag at the end of each minute, per flow and topic: records of all its partitions together, and seconds of the latest
-- one. Of the last seven days of the table, in which samples are kept by the minute. A minute in which nothing was written
-- of a topic has no row: nothing of it lagged. The seven days end with the newest sample that is not of a time to come.
CREATE OR REPLACE VIEW lag_minutes AS
SELECT flow, topic, minute, sum(lag_records) AS lag_records, max(lag_seconds) AS lag_seconds
FROM (
  SELECT flow, topic, partition, date_trunc('MINUTE', sampled_at) AS minute,
         max_by(lag_records, sampled_at) AS lag_records, max_by(lag_seconds, sampled_at) AS lag_seconds
  FROM positions
  WHERE source_end IS NOT NULL AND sampled_at >= (
    SELECT max(sampled_at) - INTERVAL 7 DAYS FROM positions WHERE sampled_at < current_timestamp() + INTERVAL 5 MINUTES)
  GROUP BY flow, topic, partition, date_trunc('MINUTE', sampled_at)
)
GROUP BY flow, topic, minute
