-- Where a source record is at the target, once for each generation of the target topic that got it; lives: offsets of
-- that generation still mean something. Of a record that is not staged any more its generation is not known (-1): that of
-- the newest one is first. Parameters: flow, topic, partition, offset, generation.
SELECT map.target_topic, map.target_partition, coalesce(map.generation, 0) AS generation,
       coalesce(map.target_generation, 0) AS target_generation,
       segment.target_first + (:offset - segment.source_first) DIV segment.stride AS target_offset,
       map.produced_at, map.batch_id, map.first_batch_id, map.source_first, map.source_last, map.record_count,
       target.flow IS NULL OR target.lives AND target.target_generation = coalesce(map.target_generation, 0) AS lives
FROM offset_map AS map
LEFT JOIN living_targets AS target ON target.flow = map.flow AND target.topic = map.topic
  AND target.target_topic = map.target_topic
LATERAL VIEW explode(map.segments) AS segment
WHERE map.flow = :flow AND map.topic = :topic AND map.partition = :partition
  AND (:generation < 0 OR coalesce(map.generation, 0) = :generation)
  AND map.source_first <= :offset AND map.source_last >= :offset
  AND :offset BETWEEN segment.source_first AND segment.source_first + (segment.record_count - 1) * segment.stride
  AND (:offset - segment.source_first) % segment.stride = 0
ORDER BY coalesce(map.generation, 0) DESC, coalesce(map.target_generation, 0) DESC
