-- Which source record a target offset holds, the newest generation of the target topic first. Parameters: flow, topic
-- (at the target), partition, offset.
SELECT map.topic, segment.source_first + (:offset - segment.target_first) * segment.stride AS offset,
       coalesce(map.generation, 0) AS generation
FROM offset_map AS map
LATERAL VIEW explode(map.segments) AS segment
WHERE map.flow = :flow AND map.target_topic = :topic AND map.target_partition = :partition
  AND map.target_first <= :offset AND map.target_last >= :offset
  AND :offset BETWEEN segment.target_first AND segment.target_first + segment.record_count - 1
ORDER BY coalesce(map.target_generation, 0) DESC
