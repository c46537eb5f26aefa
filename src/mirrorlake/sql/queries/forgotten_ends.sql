-- Behind which offset the last record that was deleted by predicate lay, in each generation of each partition that lost
-- any. Parameters: source_cluster.
SELECT topic, partition, generation, max(last_offset) + 1 AS position
FROM forgotten
WHERE source_cluster = :source_cluster
GROUP BY topic, partition, generation
