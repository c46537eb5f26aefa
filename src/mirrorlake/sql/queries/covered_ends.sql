-- How far landing was seen to have covered each partition of a source cluster. Parameters: prefix (of flow names).
SELECT topic, partition, max(staged_end) AS covered
FROM positions
WHERE startswith(flow, :prefix)
GROUP BY topic, partition
