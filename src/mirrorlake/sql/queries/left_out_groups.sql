-- The groups that a flow leaves out, and why, each with one of its partitions of topics that the flow mirrors; also those
-- for which that is over. Parameters: flow.
SELECT group_id, topic, partition, reason
FROM group_positions
WHERE flow = :flow AND source_position IS NULL AND reason IS NOT NULL
