-- How far landing was seen to have covered each generation of each partition of a source cluster; one that held nothing yet
-- was covered up to where its log began when it was seen first. Samples of an earlier version do not say of which
-- generation they are: they count for the first one. Parameters: prefix (of flow names).
SELECT topic, partition, coalesce(generation, 0) AS generation,
       greatest(max(staged_end), min_by(source_start, CASE WHEN source_end IS NOT NULL THEN sampled_at END)) AS covered
FROM positions
WHERE startswith(flow, :prefix)
GROUP BY topic, partition, coalesce(generation, 0)
