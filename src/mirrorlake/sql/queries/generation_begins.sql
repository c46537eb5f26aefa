-- Which generations the topics of a cluster have had, and from which offset on a partition has one of its own (both are
-- null where the whole topic has it). The id is Kafka's of the topic, for a partition's own with when it was decided.
-- Parameters: source_cluster.
SELECT topic, generation, partition, first_offset,
       CASE WHEN partition IS NULL OR topic_id = '' THEN topic_id
            ELSE concat(topic_id, '@', unix_millis(started_at)) END AS id
FROM generations
WHERE source_cluster = :source_cluster
