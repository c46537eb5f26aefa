-- The groups that a flow leaves out by its settings, each with one of its partitions of topics that the flow mirrors.
-- Parameters: flow, reason.
SELECT group_id, topic, partition
FROM group_positions
WHERE flow = :flow AND source_position IS NULL AND reason = :reason
