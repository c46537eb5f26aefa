-- Close incidents of one kind, topic and partition. Parameters: flow, kind, topic, partition, resolution.
UPDATE incidents
SET resolved_at = current_timestamp(), resolution = :resolution
WHERE flow = :flow AND kind = :kind AND topic <=> CAST(:topic AS STRING) AND partition <=> CAST(:partition AS INT)
  AND (resolved_at IS NULL OR resolution = 'stop')
