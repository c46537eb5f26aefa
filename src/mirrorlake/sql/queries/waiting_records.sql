-- How many records the stage holds from some offsets on, and the bytes of their keys and values. Reads these records.
-- Frames: places (topic, partition, generation, first). Parameters: source_cluster.
SELECT count(*) AS record_count,
       CAST(coalesce(sum(coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)), 0) AS BIGINT) AS byte_count
FROM records JOIN {places} AS places
  ON places.topic = records.topic AND places.partition = records.partition
  AND places.generation = coalesce(records.generation, 0) AND records.offset >= places.first
WHERE records.source_cluster = :source_cluster
