-- What is known of target topics of a flow that are gone or were made again, oldest first. Parameters: flow.
SELECT topic, target_topic, coalesce(target_generation, 0) AS target_generation, resolved_at IS NULL AS open, resolution
FROM incidents
WHERE flow = :flow AND kind = 'target_recreated' AND topic IS NOT NULL
ORDER BY at
