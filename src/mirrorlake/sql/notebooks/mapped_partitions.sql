-- What of a topic is mapped, in the newest generation of the topic and of its target topic. Parameters: flow, topic.
SELECT topic, partition, max(target_topic) AS target_topic, min(source_first) AS source_first,
       max(source_last) AS source_last, min(target_first) AS target_first, max(target_last) AS target_last,
       sum(record_count) AS record_count, count(*) AS rows_of_the_map
FROM offset_map
WHERE flow = :flow AND topic = :topic
  AND coalesce(generation, 0) = (
    SELECT max(coalesce(newest.generation, 0)) FROM offset_map AS newest WHERE newest.flow = :flow AND newest.topic = :topic)
  AND coalesce(target_generation, 0) = (
    SELECT max(coalesce(newest.target_generation, 0)) FROM offset_map AS newest
    WHERE newest.flow = :flow AND newest.topic = :topic)
GROUP BY topic, partition
ORDER BY partition
