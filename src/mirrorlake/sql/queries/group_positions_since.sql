-- Partitions in which groups of a source cluster have positions, and none that any flow had read by a time; and when the
-- first of the positions was noted. Parameters: prefix (of flow names), until_ms.
SELECT group_id, topic, partition, min(checkpointed_at) AS first_at
FROM checkpoints
WHERE startswith(flow, :prefix) AND source_position IS NOT NULL
GROUP BY group_id, topic, partition
HAVING min(unix_millis(coalesce(read_at, checkpointed_at))) > :until_ms
