-- Where the groups of a source cluster were at a time: of the newest positions that each flow from there had read by then, the
-- newest one. What a flow says to be gone (its reason is gone) it says for itself alone: one that mirrors less than before
-- reads less. Parameters: prefix (of flow names), until_ms, gone.
WITH noted AS (
  SELECT *, coalesce(read_at, checkpointed_at) AS seen_at,
         row_number() OVER (
           PARTITION BY flow, group_id, topic, partition ORDER BY coalesce(read_at, checkpointed_at) DESC) AS place
  FROM checkpoints
  WHERE startswith(flow, :prefix) AND source_position IS NOT NULL
    AND unix_millis(coalesce(read_at, checkpointed_at)) <= :until_ms
),
told AS (
  SELECT *, row_number() OVER (
              PARTITION BY group_id, topic, partition ORDER BY coalesce(generation, 0) DESC, seen_at DESC, flow) AS nth
  FROM noted
  WHERE place = 1 AND coalesce(reason, '') <> :gone
)
SELECT group_id, topic, partition, source_position, coalesce(metadata, '') AS metadata, checkpointed_at, generation
FROM told
WHERE nth = 1
