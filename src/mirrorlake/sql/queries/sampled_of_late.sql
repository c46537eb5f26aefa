-- When each flow was sampled last, of those that were of late, and how often its process does that, in seconds. Samples of
-- a time to come are of a clock that was wrong, as in the view `replication_lag`.
SELECT flow, max(sampled_at) AS newest, max_by(coalesce(interval_seconds, 10), sampled_at) AS interval_seconds
FROM positions
WHERE sampled_at > current_timestamp() - INTERVAL 2 HOURS AND sampled_at < current_timestamp() + INTERVAL 5 MINUTES
GROUP BY flow
