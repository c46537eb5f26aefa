-- The newest generation of every topic of a cluster (partition is null), and of the partitions that began generations
-- by themselves. Parameters: source_cluster.
SELECT topic, partition, max(generation) AS generation, max_by(topic_id, generation) AS topic_id,
       max_by(first_offset, generation) AS first_offset
FROM generations
WHERE source_cluster = :source_cluster
GROUP BY topic, partition
