-- How far landing was seen to have covered each partition of a source cluster; one that held nothing yet was covered up
-- to where its log began when it was seen first. Parameters: prefix (of flow names).
SELECT topic, partition, greatest(max(staged_end), min_by(source_start, sampled_at)) AS covered
FROM positions
WHERE startswith(flow, :prefix)
GROUP BY topic, partition
