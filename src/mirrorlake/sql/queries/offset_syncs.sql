-- The first and the last pair of offsets that batches after one have mapped, by partition, target topic, and generation
-- of both. Parameters: flow, batch_id (-1: all).
SELECT topic, partition, target_topic, coalesce(generation, 0) AS generation,
       coalesce(target_generation, 0) AS target_generation, min(source_first) AS source_first,
       min(target_first) AS target_first, max(source_last) AS source_last, max(target_last) AS target_last,
       max(batch_id) AS batch_id
FROM offset_map
WHERE flow = :flow AND batch_id > :batch_id
GROUP BY ALL
