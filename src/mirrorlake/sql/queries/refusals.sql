-- Partitions of a flow that stopped, at refused records, for a lost position, for records that the target lost, for a map
-- that is behind the target, or before a hole of the stage: what waits, and what was decided. target_generation is null
-- where none was noted: what is about the stage alone, and what an earlier version wrote. Parameters: flow.
SELECT kind, topic, partition, coalesce(generation, 0) AS generation, first_offset, last_offset,
       at, resolved_at IS NULL AS open, resolution, target_generation, target_offset
FROM incidents
WHERE flow = :flow AND topic IS NOT NULL
  AND kind IN ('target_refused', 'position_lost', 'target_lost', 'map_behind', 'map_unknown', 'stage_trimmed')
