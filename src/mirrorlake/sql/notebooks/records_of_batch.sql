-- The records of one batch and partition that waited longest: when each was written, landed and produced. Coordinates and
-- sizes only, no payload. None once `maintain` has merged the rows of old batches. Parameters: flow, topic, partition,
-- batch_id.
WITH runs AS (
  SELECT source_first, source_last, coalesce(generation, 0) AS generation, produced_at
  FROM offset_map
  WHERE flow = :flow AND topic = :topic AND partition = :partition AND batch_id = :batch_id AND first_batch_id IS NULL
)
SELECT records.offset, records.timestamp AS written_at, records.landed_at, runs.produced_at,
       unix_millis(records.landed_at) - unix_millis(records.timestamp) AS landing_ms,
       unix_millis(runs.produced_at) - unix_millis(records.landed_at) AS producing_ms,
       coalesce(octet_length(records.key), 0) + coalesce(octet_length(records.value), 0) AS bytes
FROM records
JOIN runs ON records.offset BETWEEN runs.source_first AND runs.source_last
  AND coalesce(records.generation, 0) = runs.generation
WHERE records.source_cluster = split(:flow, '->')[0] AND records.topic = :topic AND records.partition = :partition
ORDER BY landing_ms + producing_ms DESC, records.offset
LIMIT 20
