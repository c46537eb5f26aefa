-- The newest checkpoint of every group and partition.
CREATE OR REPLACE VIEW group_positions AS
SELECT flow, group_id, topic, partition, source_position, target_topic, target_position, metadata, checkpointed_at,
       synced, reason
FROM (
  SELECT *, row_number() OVER (PARTITION BY flow, group_id, topic, partition ORDER BY checkpointed_at DESC) AS newest
  FROM checkpoints
)
WHERE newest = 1
