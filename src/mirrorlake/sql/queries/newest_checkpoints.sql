-- The newest checkpoint of every group and partition of a flow; of one that has no counterpart at the target, topic and
-- position there are null. Parameters: flow.
SELECT group_id, topic, partition, source_position, target_topic, target_position, metadata, coalesce(synced, false)
       AS synced, reason, checkpointed_at, target_generation, generation
FROM group_positions
WHERE flow = :flow AND source_position IS NOT NULL
