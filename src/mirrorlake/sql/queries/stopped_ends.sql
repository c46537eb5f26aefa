-- From which source offset on an operator has stopped each generation of each partition of a flow. target_generation is null
-- where none was noted. Parameters: flow.
SELECT topic, partition, coalesce(generation, 0) AS generation, target_generation, min(first_offset) AS first_offset
FROM incidents
WHERE flow = :flow AND resolution = 'stop' AND topic IS NOT NULL AND partition IS NOT NULL
  AND kind IN ('target_refused', 'position_lost', 'target_lost', 'map_behind', 'map_unknown', 'stage_trimmed')
GROUP BY ALL
