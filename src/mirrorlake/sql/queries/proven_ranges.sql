-- What a flow has audited of each partition, in the order of offsets. Parameters: flow.
SELECT topic, partition, generation, target_topic, target_generation, first_offset, last_offset, proven,
       target_last_offset, record_count, audited_at, verdict
FROM proofs
WHERE flow = :flow
ORDER BY topic, partition, generation, target_topic, target_generation, first_offset
