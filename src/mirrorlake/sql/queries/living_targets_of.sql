-- The newest generation of each target topic of a flow, in the order in which they began. Parameters: flow.
SELECT topic, target_topic, target_generation, topic_id, lives
FROM living_targets
WHERE flow = :flow
ORDER BY started_at
