-- Partitions of a flow that stopped, at refused records or for a lost position: what waits, and what was decided.
-- Parameters: flow.
SELECT kind, topic, partition, first_offset, last_offset, resolved_at IS NULL AS open, resolution
FROM incidents
WHERE flow = :flow AND kind IN ('target_refused', 'position_lost') AND topic IS NOT NULL
