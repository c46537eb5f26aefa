-- What is known, and was decided, about lost, rewound or recreated topics of a source cluster. What was lost of an
-- earlier generation of a topic or partition says nothing about the newer one; where an earlier version did not note the
-- generation, the time says which it was. Parameters: source_cluster, prefix (of flow names).
WITH newest AS (
  SELECT topic, partition, max(generation) AS generation, max(started_at) AS began
  FROM generations
  WHERE source_cluster = :source_cluster AND generation > 0
  GROUP BY topic, partition
)
SELECT topic, partition, kind, first_offset, last_offset, resolved_at IS NULL AS open, resolution
FROM incidents
WHERE startswith(flow, :prefix)
  AND (kind = 'topic_recreated' OR kind IN ('source_truncated', 'source_rewound') AND NOT EXISTS (
    SELECT 1 FROM newest
    WHERE newest.topic = incidents.topic AND (newest.partition IS NULL OR newest.partition = incidents.partition)
      AND coalesce(newest.generation > incidents.generation, newest.began > incidents.at)))
