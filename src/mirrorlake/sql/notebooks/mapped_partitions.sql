-- What of a topic is mapped, in the newest generation of each of its partitions and of each target topic: a flow that had
-- another policy before has several. A partition may have begun a generation by itself. Parameters: flow, topic.
WITH mapped AS (
  SELECT *, max(coalesce(generation, 0)) OVER (PARTITION BY partition) AS newest_generation,
         max(coalesce(target_generation, 0)) OVER (PARTITION BY target_topic) AS newest_target_generation
  FROM offset_map
  WHERE flow = :flow AND topic = :topic
)
SELECT topic, partition, target_topic, min(source_first) AS source_first, max(source_last) AS source_last,
       min(target_first) AS target_first, max(target_last) AS target_last, sum(record_count) AS record_count,
       count(*) AS rows_of_the_map
FROM mapped
WHERE coalesce(generation, 0) = newest_generation AND coalesce(target_generation, 0) = newest_target_generation
GROUP BY topic, partition, target_topic
ORDER BY partition, source_first
