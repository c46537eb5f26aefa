-- Every range of equally distant source offsets with its target offsets; the k-th record of a row (from 0) has source
-- offset source_first + k * stride and target offset target_first + k. run_* bound the map row, so that a predicate on
-- them skips files; produced_at and batch_id are the row's, of the newest batch where `maintain` merged several. Source
-- offsets of a topic that was deleted and made again start over with each generation. Only the living generation of a
-- target topic is listed: offsets of a topic that was deleted lead nowhere.
CREATE OR REPLACE VIEW offset_translation AS
SELECT
  map.flow,
  map.topic,
  map.partition,
  coalesce(map.generation, 0) AS generation,
  segment.source_first,
  segment.source_first + (segment.record_count - 1) * segment.stride AS source_last,
  segment.stride,
  map.target_topic,
  map.target_partition,
  segment.target_first,
  segment.target_first + segment.record_count - 1 AS target_last,
  segment.record_count,
  map.source_last AS run_source_last,
  map.target_last AS run_target_last,
  map.produced_at,
  map.batch_id,
  coalesce(map.target_generation, 0) AS target_generation
FROM offset_map AS map
LEFT JOIN living_targets AS target ON target.flow = map.flow AND target.topic = map.topic
  AND target.target_topic = map.target_topic
LATERAL VIEW explode(map.segments) AS segment
WHERE target.flow IS NULL OR target.lives AND target.target_generation = coalesce(map.target_generation, 0)
