-- How many staged records of a partition lie between two offsets. Parameters: flow, topic, partition, generation, first,
-- last (inclusive).
SELECT count(*) AS record_count
FROM records
WHERE source_cluster = split(:flow, '->')[0] AND topic = :topic AND partition = :partition
  AND offset BETWEEN :first AND :last AND coalesce(generation, 0) = :generation
