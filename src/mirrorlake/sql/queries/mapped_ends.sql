-- Where the map of a flow ends, per source partition, target topic, and generation of both. Parameters: flow.
SELECT topic, partition, target_topic, coalesce(target_generation, 0) AS target_generation,
       coalesce(generation, 0) AS generation, max(source_last) + 1 AS source_position,
       max(target_last) + 1 AS target_position, max(batch_id) AS batch_id
FROM offset_map
WHERE flow = :flow
GROUP BY ALL
