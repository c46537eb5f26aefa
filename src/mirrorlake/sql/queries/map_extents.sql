-- Where the maps of all flows end, per partition, target topic and generation of both. Reads a few columns of the map.
SELECT flow, topic, partition, coalesce(generation, 0) AS generation, target_topic, target_partition,
       coalesce(target_generation, 0) AS target_generation, max(source_last) + 1 AS source_end,
       max(target_last) + 1 AS target_end
FROM offset_map
GROUP BY ALL
