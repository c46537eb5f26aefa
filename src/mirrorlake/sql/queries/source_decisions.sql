-- What is known, and was decided, about lost or remade topics of a source cluster. Parameters: prefix (of flow names).
SELECT topic, partition, kind, last_offset, resolved_at IS NULL AS open, resolution
FROM incidents
WHERE startswith(flow, :prefix) AND kind IN ('topic_recreated', 'source_truncated')
