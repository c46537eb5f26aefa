-- The corners of the map of one partition, for a plot. Parameters: flow, topic, partition.
SELECT source_first, source_last, target_first, target_last, stride, record_count, produced_at
FROM offset_translation
WHERE flow = :flow AND topic = :topic AND partition = :partition
ORDER BY produced_at DESC, source_first DESC
LIMIT 500
