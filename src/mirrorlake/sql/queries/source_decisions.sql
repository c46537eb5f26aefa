-- What is known, and was decided, about lost or remade topics of a source cluster. What was lost of an elder life of a
-- topic says nothing about the newer one. Parameters: source_cluster, prefix (of flow names).
WITH newest AS (
  SELECT topic, max(started_at) AS began
  FROM generations
  WHERE source_cluster = :source_cluster AND generation > 0
  GROUP BY topic
)
SELECT incidents.topic, partition, kind, last_offset, resolved_at IS NULL AS open, resolution
FROM incidents LEFT JOIN newest ON incidents.topic = newest.topic
WHERE startswith(flow, :prefix)
  AND (kind = 'topic_recreated' OR kind = 'source_truncated' AND (began IS NULL OR at >= began))
