-- Staged records that a flow never brought to its target. Parameters: flow.
SELECT topic, partition, first_offset, last_offset, record_count
FROM divergence
WHERE flow = :flow
ORDER BY topic, partition, generation
