-- All generations of the target topics of a flow, oldest first. Parameters: flow.
SELECT target_topic, topic, target_generation, topic_id, begins, began, started_at
FROM target_generations
WHERE flow = :flow
ORDER BY started_at, target_generation
