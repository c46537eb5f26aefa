-- Which generations the topics of a cluster have had, and from which offset on a partition has one of its own (both are
-- null where the whole topic has it). Parameters: source_cluster.
SELECT topic, generation, partition, first_offset
FROM generations
WHERE source_cluster = :source_cluster
