-- The staged offsets within ranges (inclusive), by runs that rise by one. Frames: wanted (topic, partition, generation,
-- first, last). Parameters: source_cluster.
SELECT topic, partition, min(offset) AS first_offset, max(offset) AS last_offset
FROM (
  SELECT records.topic, records.partition, records.offset,
         records.offset - row_number() OVER (PARTITION BY records.topic, records.partition ORDER BY records.offset) AS run
  FROM records JOIN (SELECT * FROM {wanted}) AS wanted ON records.topic = wanted.topic
    AND records.partition = wanted.partition AND coalesce(records.generation, 0) = wanted.generation
    AND records.offset BETWEEN wanted.first AND wanted.last
  WHERE records.source_cluster = :source_cluster
) AS numbered
GROUP BY topic, partition, run
