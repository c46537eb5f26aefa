-- The newest life of every topic of a cluster. Parameters: source_cluster.
SELECT topic, max(generation) AS generation, max_by(topic_id, generation) AS topic_id
FROM generations
WHERE source_cluster = :source_cluster
GROUP BY topic
