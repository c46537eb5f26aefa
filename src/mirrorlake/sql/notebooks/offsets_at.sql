-- The first source offset at or behind a time, per partition, of the log that the source has now: where a consumer that goes
-- back to it begins. Parameters: flow, topic, at.
SELECT records.partition, min(records.offset) AS source_offset, min(timestamp) AS written_at
FROM records
LEFT ANTI JOIN generations AS later ON later.source_cluster = records.source_cluster AND later.topic = records.topic
  AND later.generation > coalesce(records.generation, 0)
  AND (later.partition IS NULL OR later.partition = records.partition AND later.first_offset <= records.offset)
WHERE records.source_cluster = split(:flow, '->')[0] AND records.topic = :topic AND timestamp >= CAST(:at AS TIMESTAMP)
GROUP BY records.partition
ORDER BY records.partition
