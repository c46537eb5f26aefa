-- When each flow was sampled last, of those that were within ten minutes.
SELECT flow, max(sampled_at) AS newest
FROM positions
WHERE sampled_at > current_timestamp() - INTERVAL 10 MINUTES
GROUP BY flow
