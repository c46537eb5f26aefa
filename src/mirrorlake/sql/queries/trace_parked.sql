-- When a record was parked, and sent all the same, by the newest target topic that refused it. Parameters: flow, topic,
-- partition, offset, generation.
SELECT reason, parked_at, replayed_at, target_topic
FROM parked
WHERE flow = :flow AND topic = :topic AND partition = :partition AND offset = :offset AND generation = :generation
ORDER BY target_generation DESC
LIMIT 1
