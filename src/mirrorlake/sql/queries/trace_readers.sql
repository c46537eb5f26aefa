-- Which consumer groups have read past a record, by their checkpoints. side source: positions of groups at the source of
-- the flow. side target: positions to which the flow moved groups at the target, and, where an opposite flow mirrors the
-- target topic, those of groups that read there. passed_at: when a position beyond the record was first seen.
-- Parameters: flow, back (name of the opposite flow), topic, target_topic, partition, generation, offset, target_offset and
-- target_generation (the greatest BIGINT and 0 for a record that is not at the target).
WITH seen AS (
  SELECT group_id, 'source' AS side, source_position AS position,
         source_position > :offset AND coalesce(generation, 0) = :generation AS is_past,
         coalesce(read_at, checkpointed_at) AS at
  FROM checkpoints
  WHERE flow = :flow AND topic = :topic AND partition = :partition
  UNION ALL
  SELECT group_id, 'target', target_position,
         target_position > :target_offset AND coalesce(target_generation, 0) = :target_generation, checkpointed_at
  FROM checkpoints
  WHERE flow = :flow AND topic = :topic AND partition = :partition AND synced
  UNION ALL
  SELECT group_id, 'target', source_position, source_position > :target_offset, coalesce(read_at, checkpointed_at)
  FROM checkpoints
  WHERE flow = :back AND topic = :target_topic AND partition = :partition
)
SELECT group_id, side, max_by(position, at) AS position, max_by(is_past, at) AS is_past, max(at) AS seen_at,
       min(IF(is_past, at, NULL)) AS passed_at
FROM seen
WHERE position IS NOT NULL
GROUP BY group_id, side
ORDER BY side, group_id
