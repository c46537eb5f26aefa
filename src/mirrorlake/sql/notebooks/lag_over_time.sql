-- Lag of a flow at each sample. Parameters: flow, since, until.
SELECT sampled_at, topic, sum(lag_records) AS lag_records, max(lag_seconds) AS lag_seconds
FROM positions
WHERE flow = :flow AND sampled_at BETWEEN CAST(:since AS TIMESTAMP) AND CAST(:until AS TIMESTAMP) + INTERVAL 1 MINUTE
GROUP BY sampled_at, topic
ORDER BY sampled_at, topic
