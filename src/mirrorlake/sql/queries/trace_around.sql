-- What is known of an offset that the stage does not hold: its nearest neighbours that it does (within 100,000 offsets),
-- and when `maintain` or `forget` deleted it, if one did, of the log that is there now. Parameters: flow, topic, partition,
-- offset.
WITH near AS (
  SELECT max(IF(offset < :offset, offset, NULL)) AS before, min(IF(offset > :offset, offset, NULL)) AS behind
  FROM records
  WHERE source_cluster = split(:flow, '->')[0] AND topic = :topic AND partition = :partition
    AND offset BETWEEN :offset - 100000 AND :offset + 100000
),
removed AS (
  SELECT max(removed_at) AS removed_at
  FROM removals LEFT ANTI JOIN generations AS later ON later.source_cluster = removals.source_cluster
    AND later.topic = removals.topic AND later.generation > removals.generation
    AND (later.partition IS NULL OR later.partition = removals.partition AND later.first_offset <= :offset)
  WHERE removals.source_cluster = split(:flow, '->')[0] AND removals.topic = :topic
    AND removals.partition = :partition AND removals.first_offset <= :offset AND removals.below > :offset
),
unkept AS (
  SELECT max(noted_at) AS forgotten_at
  FROM forgotten LEFT ANTI JOIN generations AS later ON later.source_cluster = forgotten.source_cluster
    AND later.topic = forgotten.topic AND later.generation > forgotten.generation
    AND (later.partition IS NULL OR later.partition = forgotten.partition AND later.first_offset <= :offset)
  WHERE forgotten.source_cluster = split(:flow, '->')[0] AND forgotten.topic = :topic
    AND forgotten.partition = :partition AND forgotten.first_offset <= :offset AND forgotten.last_offset >= :offset
)
SELECT before, behind, removed_at, forgotten_at FROM near CROSS JOIN removed CROSS JOIN unkept
