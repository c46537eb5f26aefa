-- What the stage holds within ranges of offsets (inclusive), one a row: how many records, the last one's offset, and
-- between which times they lie, in ms. Frames: ranges (topic, partition, generation, first, last). Parameters: cluster.
SELECT ranges.topic, ranges.partition, ranges.generation, count(*) AS record_count,
       max(records.offset) AS last_offset, min(coalesce(timestamp_ms, unix_millis(timestamp))) AS oldest_ms,
       max(coalesce(timestamp_ms, unix_millis(timestamp))) AS newest_ms
FROM records JOIN (SELECT * FROM {ranges}) AS ranges ON records.topic = ranges.topic
  AND records.partition = ranges.partition AND coalesce(records.generation, 0) = ranges.generation
  AND records.offset BETWEEN ranges.first AND ranges.last
WHERE source_cluster = :cluster
GROUP BY ranges.topic, ranges.partition, ranges.generation
