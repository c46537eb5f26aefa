-- The first source offset at or behind a time, per partition: where a consumer that goes back to it begins.
-- Parameters: flow, topic, at.
SELECT partition, min(offset) AS source_offset, min(timestamp) AS written_at
FROM records
WHERE source_cluster = split(:flow, '->')[0] AND topic = :topic AND timestamp >= CAST(:at AS TIMESTAMP)
GROUP BY partition
ORDER BY partition
