-- Behind the newest staged offset of every partition of a cluster, in the newest life of its topic.
-- Parameters: source_cluster.
WITH lives AS (
  SELECT topic, partition, generation, max(offset) + 1 AS next_offset
  FROM records
  WHERE source_cluster = :source_cluster
  GROUP BY topic, partition, generation
)
SELECT topic, partition, max(generation) AS generation, max_by(next_offset, generation) AS next_offset
FROM lives
GROUP BY topic, partition
