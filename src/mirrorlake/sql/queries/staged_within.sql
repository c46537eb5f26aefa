-- What the stage holds within ranges of offsets (inclusive), one a row: how many records, the last one's offset, and
-- between which times they lie, in ms. Frames: ranges (topic, partition, generation, first, last).
-- Parameters: cluster, noted_too (whether what `forget` has noted and not deleted yet counts).
SELECT ranges.topic, ranges.partition, ranges.generation, count(*) AS record_count,
       max(records.offset) AS last_offset, min(coalesce(timestamp_ms, unix_millis(timestamp))) AS oldest_ms,
       max(coalesce(timestamp_ms, unix_millis(timestamp))) AS newest_ms
FROM records JOIN (SELECT * FROM {ranges}) AS ranges ON records.topic = ranges.topic
  AND records.partition = ranges.partition AND coalesce(records.generation, 0) = ranges.generation
  AND records.offset BETWEEN ranges.first AND ranges.last
  LEFT ANTI JOIN (
    SELECT * FROM forgotten WHERE source_cluster = :cluster AND deleted_at IS NULL AND NOT :noted_too
  ) AS noted ON noted.topic = records.topic AND noted.partition = records.partition
    AND noted.generation = coalesce(records.generation, 0)
    AND records.offset BETWEEN noted.first_offset AND noted.last_offset
WHERE source_cluster = :cluster
GROUP BY ranges.topic, ranges.partition, ranges.generation
