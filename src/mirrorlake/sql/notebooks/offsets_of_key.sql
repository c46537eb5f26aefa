-- The newest staged records of a key: where each is at the source, and when it was written and landed. A key is read as
-- UTF-8. It reads the keys of the topic's whole stage, or of one partition of it. Parameters: flow, topic, key, partition
-- (-1: all).
SELECT partition, offset AS source_offset, timestamp AS written_at, landed_at, octet_length(value) AS value_bytes
FROM records
WHERE source_cluster = split(:flow, '->')[0] AND topic = :topic AND CAST(key AS STRING) = :key
  AND (:partition < 0 OR partition = :partition)
ORDER BY landed_at DESC, partition, offset DESC
LIMIT 20
