-- The alias under which each cluster was seen last.
SELECT cluster_id, max_by(alias, last_seen) AS alias
FROM clusters
GROUP BY cluster_id
