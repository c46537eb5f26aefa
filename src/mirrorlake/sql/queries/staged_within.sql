-- How many records the stage holds within ranges of offsets (inclusive), one a row. Frames: ranges (topic, partition,
-- generation, first, last). Parameters: cluster.
SELECT ranges.topic, ranges.partition, ranges.generation, count(*) AS record_count
FROM records JOIN (SELECT * FROM {ranges}) AS ranges ON records.topic = ranges.topic
  AND records.partition = ranges.partition AND coalesce(records.generation, 0) = ranges.generation
  AND records.offset BETWEEN ranges.first AND ranges.last
WHERE source_cluster = :cluster
GROUP BY ranges.topic, ranges.partition, ranges.generation
