-- Behind the newest staged offset of every partition of a cluster. Parameters: source_cluster.
SELECT topic, partition, max(offset) + 1 AS next_offset
FROM records
WHERE source_cluster = :source_cluster
GROUP BY topic, partition
