-- The newest record with a key, by its timestamp. Parameters: flow, topic, key (in hexadecimal digits), since_ms.
SELECT partition, offset, coalesce(generation, 0) AS generation, timestamp AS written_at
FROM records
WHERE source_cluster = split(:flow, '->')[0] AND topic = :topic AND key = unhex(:key)
  AND coalesce(timestamp_ms, unix_millis(timestamp)) >= :since_ms
ORDER BY coalesce(timestamp_ms, unix_millis(timestamp)) DESC, partition, generation DESC, offset DESC
LIMIT 1
