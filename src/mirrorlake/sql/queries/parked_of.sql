-- The records that a flow goes on behind. Parameters: flow.
SELECT topic, partition, generation, offset, target_topic, target_generation, reason, byte_count
FROM parked
WHERE flow = :flow
