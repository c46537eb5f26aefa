-- The newest checkpoint of every group and partition. If it belongs to a past generation of the target topic, it says so: its
-- target position means nothing any more. Nor does one behind records that the target has lost, of a time before an operator
-- decided about these: they come again at other offsets, if at all.
CREATE OR REPLACE VIEW group_positions AS
WITH ranked AS (
  SELECT *, row_number() OVER (PARTITION BY flow, group_id, topic, partition ORDER BY checkpointed_at DESC) AS newest
  FROM checkpoints
),
lost AS (
  SELECT flow, topic, partition, coalesce(target_generation, 0) AS of_generation,
         collect_list(struct(target_offset, resolved_at)) AS losses
  FROM incidents
  WHERE kind = 'target_lost' AND target_offset IS NOT NULL
  GROUP BY flow, topic, partition, coalesce(target_generation, 0)
),
kept AS (
  SELECT ranked.*, target.flow IS NULL
           OR target.lives AND target.target_generation = coalesce(ranked.target_generation, 0) AS is_living,
         coalesce(exists(losses, loss -> loss.target_offset < ranked.target_position
                                   AND coalesce(loss.resolved_at >= ranked.checkpointed_at, true)), false)
           AND coalesce(ranked.reason <> 'the group has no position there any more', true) AS is_behind_lost
  FROM ranked LEFT JOIN living_targets AS target ON target.flow = ranked.flow AND target.topic = ranked.topic
    AND target.target_topic = ranked.target_topic
  LEFT JOIN lost ON lost.flow = ranked.flow AND lost.topic = ranked.topic AND lost.partition = ranked.partition
    AND lost.of_generation = coalesce(ranked.target_generation, 0)
  WHERE newest = 1
)
SELECT flow, group_id, topic, partition, source_position, target_topic, target_position, metadata, checkpointed_at,
       synced AND is_living AND NOT is_behind_lost AS synced,
       CASE WHEN NOT is_living THEN 'the target topic is not the one that the position was of'
            WHEN is_behind_lost THEN 'the position is ahead of the mirror: the target has lost records in front of it'
            ELSE reason END AS reason,
       coalesce(target_generation, 0) AS target_generation, coalesce(generation, 0) AS generation
FROM kept
