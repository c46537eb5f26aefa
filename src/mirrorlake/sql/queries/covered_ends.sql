-- How far landing was seen to have covered each generation of each partition of a source cluster; one that held nothing yet
-- was covered up to the lowest offset that its log was seen to begin at, whichever clock says that this was first. Samples of
-- an earlier version do not say of which generation they are: they count for the first one. Parameters: prefix (of flow
-- names).
SELECT topic, partition, coalesce(generation, 0) AS generation,
       greatest(max(staged_end), min(source_start)) AS covered
FROM positions
WHERE startswith(flow, :prefix)
GROUP BY topic, partition, coalesce(generation, 0)
