-- Which offsets of a source cluster were deleted by predicate. Parameters: source_cluster.
SELECT topic, partition, generation, first_offset, last_offset
FROM forgotten
WHERE source_cluster = :source_cluster
