-- Where the map of a flow ends, per source partition. Parameters: flow.
SELECT topic, partition, max(source_last) + 1 AS source_position,
       max_by(target_last, source_last) + 1 AS target_position
FROM offset_map
WHERE flow = :flow
GROUP BY topic, partition
