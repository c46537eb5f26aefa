-- How far a partition was produced at a time: the last source offset of its map by then. Parameters: flow, topic,
-- partition, generation, offset (only below it), until_ms.
SELECT coalesce(max(source_last), -1L) AS source_last
FROM offset_map
WHERE flow = :flow AND topic = :topic AND partition = :partition AND coalesce(generation, 0) = :generation
  AND source_last < :offset AND produced_at <= timestamp_millis(:until_ms)
