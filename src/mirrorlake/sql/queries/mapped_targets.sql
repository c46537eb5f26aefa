-- What the map holds of every partition of target topics, in the newest generation that has some.
-- Frames: runs (rows of offset_map, of one flow).
WITH generations AS (
  SELECT topic, target_topic, target_partition, coalesce(target_generation, 0) AS target_generation,
         min(source_first) AS source_first, max(source_last) AS source_last, sum(record_count) AS record_count,
         max(target_last) + 1 AS target_end
  FROM {runs}
  GROUP BY topic, target_topic, target_partition, coalesce(target_generation, 0)
)
SELECT topic, target_topic, target_partition, max(target_generation) AS target_generation,
       max_by(source_first, target_generation) AS source_first, max_by(source_last, target_generation) AS source_last,
       max_by(record_count, target_generation) AS record_count, max_by(target_end, target_generation) AS target_end
FROM generations
GROUP BY topic, target_topic, target_partition
ORDER BY topic, target_topic, target_partition
