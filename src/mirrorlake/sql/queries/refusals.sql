-- Partitions of a flow that stopped, at refused records, for a lost position, for records that the target lost, or before a
-- hole of the stage: what waits, and what was decided. Parameters: flow.
SELECT kind, topic, partition, first_offset, last_offset, resolved_at IS NULL AS open, resolution,
       coalesce(target_generation, 0) AS target_generation, target_offset
FROM incidents
WHERE flow = :flow AND kind IN ('target_refused', 'position_lost', 'target_lost', 'stage_trimmed') AND topic IS NOT NULL
