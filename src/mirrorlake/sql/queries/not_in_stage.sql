-- Which offsets of the topics of a cluster were deleted from the stage, or passed over when they were landed; inclusive.
-- Parameters: source_cluster.
SELECT topic, partition, generation, first_offset, last_offset
FROM forgotten
WHERE source_cluster = :source_cluster
UNION ALL
SELECT topic, partition, generation, first_offset, below - 1
FROM removals
WHERE source_cluster = :source_cluster
