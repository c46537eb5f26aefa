-- How late the records around one were: 500 offsets to either side, as far as they are staged and mapped, and their rows
-- of the map not merged. Parameters: flow, topic, partition, offset.
WITH runs AS (
  SELECT source_first, source_last, coalesce(generation, 0) AS generation, max(produced_at) AS produced_at
  FROM offset_map
  WHERE flow = :flow AND topic = :topic AND partition = :partition AND first_batch_id IS NULL
    AND source_last >= :offset - 500 AND source_first <= :offset + 500
  GROUP BY source_first, source_last, coalesce(generation, 0)
)
SELECT records.offset, unix_millis(records.landed_at) - unix_millis(records.timestamp) AS landing_ms,
       unix_millis(runs.produced_at) - unix_millis(records.timestamp) AS replication_ms
FROM records
JOIN runs ON records.offset BETWEEN runs.source_first AND runs.source_last
  AND coalesce(records.generation, 0) = runs.generation
WHERE records.source_cluster = split(:flow, '->')[0] AND records.topic = :topic AND records.partition = :partition
  AND records.offset BETWEEN :offset - 500 AND :offset + 500
ORDER BY records.offset
