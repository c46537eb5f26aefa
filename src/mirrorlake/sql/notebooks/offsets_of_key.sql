-- The newest staged records of a key, of the log that the source has now: where each is at the source, and when it was written
-- and landed. A key is read as UTF-8. It reads the keys of the topic's whole stage, or of one partition of it. Parameters:
-- flow, topic, key, partition (-1: all).
SELECT records.partition, records.offset AS source_offset, timestamp AS written_at, landed_at,
       octet_length(value) AS value_bytes
FROM records
LEFT ANTI JOIN generations AS later ON later.source_cluster = records.source_cluster AND later.topic = records.topic
  AND later.generation > coalesce(records.generation, 0)
  AND (later.partition IS NULL OR later.partition = records.partition AND later.first_offset <= records.offset)
WHERE records.source_cluster = split(:flow, '->')[0] AND records.topic = :topic AND CAST(key AS STRING) = :key
  AND (:partition < 0 OR records.partition = :partition)
ORDER BY landed_at DESC, records.partition, records.offset DESC
LIMIT 20
