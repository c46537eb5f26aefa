-- What the map has of partitions from a target offset on, in each generation of their source topic: source offsets
-- (inclusive), and how many records. Frames: lost (topic, partition, target_topic, target_generation, target_offset), each
-- partition once. Parameters: flow.
SELECT map.topic, map.partition, map.generation,
       min(map.source_first + greatest(0L, lost.target_offset - map.target_first) * map.stride) AS first_offset,
       max(map.source_last) AS last_offset,
       sum(least(map.record_count, map.target_last - lost.target_offset + 1)) AS record_count
FROM offset_translation AS map JOIN {lost} AS lost
  ON map.topic = lost.topic AND map.partition = lost.partition AND map.target_topic = lost.target_topic
  AND map.target_generation = lost.target_generation AND map.target_last >= lost.target_offset
WHERE map.flow = :flow
GROUP BY map.topic, map.partition, map.generation
ORDER BY map.topic, map.partition, map.generation
