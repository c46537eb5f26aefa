-- How far a flow has come in a generation of a partition: the last source offset of its map, and the first one that it
-- mirrors (null: the partition came later than the flow); and of one record in it, when `forget` noted it, and when a replay
-- sent it to the flow's own target topic. Parameters: flow, topic, partition, generation, offset (of the record).
WITH mapped AS (
  SELECT max(source_last) AS source_last
  FROM offset_map
  WHERE flow = :flow AND topic = :topic AND partition = :partition AND coalesce(generation, 0) = :generation
),
began AS (
  SELECT min(first_offset) AS first_offset
  FROM starts
  WHERE flow = :flow AND topic = :topic AND partition = :partition AND generation = :generation
),
unkept AS (
  SELECT max(noted_at) AS forgotten_at
  FROM forgotten
  WHERE source_cluster = split(:flow, '->')[0] AND topic = :topic AND partition = :partition AND generation = :generation
    AND first_offset <= :offset AND last_offset >= :offset
),
sent AS (
  SELECT max(map.produced_at) AS replayed_at
  FROM offset_map AS map
  JOIN living_targets AS target ON target.flow = :flow AND target.topic = :topic
    AND target.target_topic = map.target_topic AND target.lives
  LATERAL VIEW explode(map.segments) AS segment
  WHERE map.flow LIKE 'replay:%' AND split(map.flow, ':')[2] = :flow AND map.topic = :topic AND map.partition = :partition
    AND coalesce(map.generation, 0) = :generation AND map.source_first <= :offset AND map.source_last >= :offset
    AND :offset BETWEEN segment.source_first AND segment.source_first + (segment.record_count - 1) * segment.stride
    AND (:offset - segment.source_first) % segment.stride = 0
)
SELECT source_last, first_offset, forgotten_at, replayed_at
FROM mapped CROSS JOIN began CROSS JOIN unkept CROSS JOIN sent
