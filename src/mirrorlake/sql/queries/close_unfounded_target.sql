-- Close incidents about a target topic that turns out to be the one that was noted. Parameters: flow, topic,
-- target_generation.
UPDATE incidents
SET resolved_at = current_timestamp(), resolution = 'the topic is the one that it was'
WHERE flow = :flow AND kind = 'target_recreated' AND topic = :topic
  AND coalesce(target_generation, 0) = :target_generation
  AND (resolved_at IS NULL OR resolution IN ('again', 'continue'))
