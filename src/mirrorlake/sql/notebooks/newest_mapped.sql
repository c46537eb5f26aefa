-- The newest record of a topic that is mapped, of the partition that was produced last. Parameters: flow, topic.
SELECT partition, source_last AS offset
FROM offset_map
WHERE flow = :flow AND topic = :topic AND produced_at IS NOT NULL
ORDER BY produced_at DESC, partition, source_last DESC
LIMIT 1
