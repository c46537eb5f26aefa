-- What targets of a flow have lost, from which source offset on, and when that was decided about, or else found.
-- target_topic is null where an earlier version did not note it. Parameters: flow.
SELECT topic, partition, coalesce(generation, 0) AS generation, coalesce(target_generation, 0) AS target_generation,
       first_offset AS first, coalesce(resolved_at, at) AS at, target_topic
FROM incidents
WHERE flow = :flow AND kind = 'target_lost' AND first_offset IS NOT NULL
