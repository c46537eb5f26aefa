-- Lag per flow and topic, from the newest samples.
SELECT flow, topic, any_value(target_topic) AS target_topic, count(*) AS partitions, sum(lag_records) AS lag_records,
       max(sampled_at) AS sampled_at
FROM replication_lag
GROUP BY flow, topic
ORDER BY flow, topic
