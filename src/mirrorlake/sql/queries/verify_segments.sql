-- The map of some ranges of source offsets, and the last segment in front of each: what is behind that one at the target
-- belongs to the range. Frames: wanted (topic, partition, generation, target_topic, first, last). Parameters: flow.
WITH asked AS (
  SELECT * FROM {wanted}
),
mine AS (
  SELECT map.topic, map.partition, map.generation AS of_generation, map.source_first, map.source_last, map.stride,
         map.target_first, map.target_last, map.record_count, asked.generation AS wanted, asked.first, asked.last
  FROM offset_translation AS map JOIN asked
    ON asked.topic = map.topic AND asked.partition = map.partition AND asked.target_topic = map.target_topic
  WHERE map.flow = :flow AND map.generation <= asked.generation
)
SELECT topic, partition, source_first, stride, target_first, record_count, CAST(NULL AS BIGINT) AS target_before
FROM mine
WHERE of_generation = wanted AND source_last >= first AND source_first <= last
UNION ALL
SELECT topic, partition, NULL, NULL, NULL, NULL, max(target_last) + 1
FROM mine
WHERE of_generation < wanted OR source_last < first
GROUP BY topic, partition
