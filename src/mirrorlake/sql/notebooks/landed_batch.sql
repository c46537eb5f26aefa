-- How long the records of one batch waited before they were landed, and behind that. Parameters: as records_of_batch.
WITH runs AS (
  SELECT source_first, source_last, coalesce(generation, 0) AS generation, produced_at
  FROM offset_map
  WHERE flow = :flow AND topic = :topic AND partition = :partition AND batch_id = :batch_id AND first_batch_id IS NULL
)
SELECT count(*) AS records, avg(unix_millis(records.landed_at) - unix_millis(records.timestamp)) AS landing_ms,
       avg(unix_millis(runs.produced_at) - unix_millis(records.landed_at)) AS producing_ms,
       max(coalesce(octet_length(records.value), 0)) AS largest_bytes
FROM records
JOIN runs ON records.offset BETWEEN runs.source_first AND runs.source_last
  AND coalesce(records.generation, 0) = runs.generation
WHERE records.source_cluster = split(:flow, '->')[0] AND records.topic = :topic AND records.partition = :partition
