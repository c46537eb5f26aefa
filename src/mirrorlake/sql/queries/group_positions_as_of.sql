-- Where the groups of a source cluster were at a time: the newest position that any flow from there had read by then. One
-- that its group had left by then (its reason is gone) is not told. Parameters: prefix (of flow names), until_ms, gone.
WITH noted AS (
  SELECT *, row_number() OVER (
              PARTITION BY group_id, topic, partition ORDER BY coalesce(read_at, checkpointed_at) DESC, flow) AS place
  FROM checkpoints
  WHERE startswith(flow, :prefix) AND source_position IS NOT NULL AND unix_millis(checkpointed_at) <= :until_ms
)
SELECT group_id, topic, partition, source_position, coalesce(metadata, '') AS metadata, checkpointed_at
FROM noted
WHERE place = 1 AND coalesce(reason, '') <> :gone
