-- The alias under which each cluster was seen last, and whether that was within the last ten minutes.
SELECT cluster_id, max_by(alias, last_seen) AS alias, max(last_seen) > current_timestamp() - INTERVAL 10 MINUTES AS fresh
FROM clusters
GROUP BY cluster_id
