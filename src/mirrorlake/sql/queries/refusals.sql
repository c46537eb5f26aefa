-- Refused records of a flow: what waits, and what was decided. Parameters: flow.
SELECT topic, partition, first_offset, last_offset, resolved_at IS NULL AS open, resolution
FROM incidents
WHERE flow = :flow AND kind = 'target_refused' AND topic IS NOT NULL
