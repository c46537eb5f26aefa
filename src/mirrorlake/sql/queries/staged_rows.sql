-- The staged records of some offsets, each of the newest generation, not before one, that has it: what tells it from
-- another record. Frames: offsets (topic, partition, offset, since). Parameters: source_cluster.
SELECT topic, partition, offset, ms, key, value
FROM (
  SELECT records.topic, records.partition, records.offset, records.key, records.value,
         coalesce(records.timestamp_ms, unix_millis(records.timestamp)) AS ms,
         row_number() OVER (PARTITION BY records.topic, records.partition, records.offset
                            ORDER BY coalesce(records.generation, 0) DESC) AS place
  FROM records JOIN (SELECT * FROM {offsets}) AS wanted ON records.topic = wanted.topic
    AND records.partition = wanted.partition AND records.offset = wanted.offset
  WHERE records.source_cluster = :source_cluster AND coalesce(records.generation, 0) >= wanted.since
) AS found
WHERE place = 1
