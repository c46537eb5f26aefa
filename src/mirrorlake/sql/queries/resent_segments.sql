-- The map of a resend, as segments. Parameters: flow.
SELECT topic, partition, generation, source_first, stride, target_first, record_count
FROM offset_translation
WHERE flow = :flow
