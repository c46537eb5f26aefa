-- The newest checkpoint of every group and partition. If it belongs to a past generation of the target topic, it says so: its
-- target position means nothing any more.
CREATE OR REPLACE VIEW group_positions AS
WITH ranked AS (
  SELECT *, row_number() OVER (PARTITION BY flow, group_id, topic, partition ORDER BY checkpointed_at DESC) AS newest
  FROM checkpoints
),
kept AS (
  SELECT ranked.*, target.flow IS NULL
           OR target.lives AND target.target_generation = coalesce(ranked.target_generation, 0) AS is_living
  FROM ranked LEFT JOIN living_targets AS target ON target.flow = ranked.flow AND target.topic = ranked.topic
    AND target.target_topic = ranked.target_topic
  WHERE newest = 1
)
SELECT flow, group_id, topic, partition, source_position, target_topic, target_position, metadata, checkpointed_at,
       synced AND is_living AS synced,
       IF(is_living, reason, 'the target topic is not the one that the position was of') AS reason,
       coalesce(target_generation, 0) AS target_generation, coalesce(generation, 0) AS generation
FROM kept
