-- Where the map of a flow ends, per source partition, in the newest life of its topic. Parameters: flow.
WITH lives AS (
  SELECT topic, partition, generation, max(source_last) + 1 AS source_position, max(target_last) + 1 AS target_position
  FROM offset_map
  WHERE flow = :flow
  GROUP BY topic, partition, generation
)
SELECT topic, partition, max(generation) AS generation, max_by(source_position, generation) AS source_position,
       max(target_position) AS target_position
FROM lives
GROUP BY topic, partition
