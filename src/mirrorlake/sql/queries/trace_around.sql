-- What is known of an offset that the stage does not hold: its nearest neighbours that it does (within 100,000 offsets),
-- and when `maintain` or `forget` deleted it, if one did, of the log that is there now. Parameters: flow, topic, partition,
-- offset.
WITH near AS (
  SELECT max(IF(offset < :offset, offset, NULL)) AS before, min(IF(offset > :offset, offset, NULL)) AS behind
  FROM records
  WHERE source_cluster = split(:flow, '->')[0] AND topic = :topic AND partition = :partition
    AND offset BETWEEN :offset - 100000 AND :offset + 100000
),
gone AS (
  SELECT source_cluster, topic, partition, generation, first_offset, below, removed_at, CAST(NULL AS TIMESTAMP) AS forgotten_at
  FROM removals
  UNION ALL
  SELECT source_cluster, topic, partition, generation, first_offset, last_offset + 1, NULL, noted_at
  FROM forgotten
),
taken AS (
  SELECT max(removed_at) AS removed_at, max(forgotten_at) AS forgotten_at
  FROM gone LEFT ANTI JOIN generations AS later ON later.source_cluster = gone.source_cluster
    AND later.topic = gone.topic AND later.generation > gone.generation
    AND (later.partition IS NULL OR later.partition = gone.partition AND later.first_offset <= :offset)
  WHERE gone.source_cluster = split(:flow, '->')[0] AND gone.topic = :topic AND gone.partition = :partition
    AND gone.first_offset <= :offset AND gone.below > :offset
)
SELECT before, behind, removed_at, forgotten_at FROM near CROSS JOIN taken
