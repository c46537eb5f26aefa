-- Lag of a flow at the end of each minute. Parameters: flow, since, until.
SELECT minute, topic, sum(lag_records) AS lag_records, max(lag_seconds) AS lag_seconds
FROM (
  SELECT topic, partition, date_trunc('MINUTE', sampled_at) AS minute,
         max_by(lag_records, sampled_at) AS lag_records, max_by(lag_seconds, sampled_at) AS lag_seconds
  FROM positions
  WHERE flow = :flow AND source_end IS NOT NULL
    AND sampled_at BETWEEN CAST(:since AS TIMESTAMP) AND CAST(:until AS TIMESTAMP) + INTERVAL 1 MINUTE
  GROUP BY topic, partition, date_trunc('MINUTE', sampled_at)
)
GROUP BY minute, topic
ORDER BY minute, topic
