-- When each flow was sampled last, of those that were of late, and how often its process does that, in seconds.
SELECT flow, max(sampled_at) AS newest, max_by(coalesce(interval_seconds, 10), sampled_at) AS interval_seconds
FROM positions
WHERE sampled_at > current_timestamp() - INTERVAL 2 HOURS
GROUP BY flow
