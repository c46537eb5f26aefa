-- The law of translation, backward: a target position goes to the source offset of the first mapped record at or behind
-- it on the target; behind all of them, to the position behind the last one, exactly if nothing of the flow lies in
-- between: a sample says so (target_passed_end) once the map has come as far as it says (mapped_end).
-- Frames: asked (topic on the target, partition, offset), runs (of offset_translation), samples (of positions).
-- One row per position asked. All goes through one pass, as in translate_forward.sql.
WITH steps AS (
  SELECT target_topic AS name, target_partition AS partition, target_last AS at, 0 AS asks,
         struct(source_first, source_last, stride, target_first, topic) AS run, NULL AS sample
  FROM {runs}
  UNION ALL
  SELECT topic, partition, offset, 1, NULL, NULL
  FROM {asked}
  UNION ALL
  SELECT target_topic, partition, NULL, 0, NULL, struct(sampled_at, target_passed_end, mapped_end, produced_end, topic)
  FROM {samples}
),
named AS (
  SELECT name, partition, at, asks, run, sample, IF(run IS NULL, NULL, at) AS target_last,
         max_by(run.topic, IF(run IS NULL, NULL, at)) OVER (PARTITION BY name) AS name_origin
  FROM steps
),
ended AS (
  SELECT *, max_by(run.source_last, IF(run IS NULL, NULL, at)) OVER (PARTITION BY name, partition) + 1 AS map_end
  FROM named
),
weighed AS (
  SELECT *, coalesce(sample.mapped_end, sample.produced_end) <= coalesce(map_end, 0L) AS counts
  FROM ended
),
told AS (
  SELECT
    name, partition, at AS offset, asks, name_origin, map_end,
    last(run) IGNORE NULLS OVER (
      PARTITION BY name, partition ORDER BY at DESC, asks ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS next,
    max(target_last) OVER whole_partition AS target_last,
    max_by(run.topic, target_last) OVER whole_partition AS partition_origin,
    max(IF(counts, sample.target_passed_end, NULL)) OVER whole_partition AS target_passed_end,
    max_by(sample.topic, sample.sampled_at) OVER whole_partition AS sampled_origin,
    max_by(sample.produced_end, IF(counts, sample.sampled_at, NULL)) OVER whole_partition AS produced_end
  FROM weighed
  WINDOW whole_partition AS (PARTITION BY name, partition)
)
SELECT
  name AS asked_topic,
  partition,
  offset AS asked_offset,
  coalesce(next.topic, partition_origin, sampled_origin, name_origin) AS topic,
  CASE
    WHEN next IS NOT NULL THEN next.source_first + greatest(0L, told.offset - next.target_first) * next.stride
    ELSE coalesce(map_end, produced_end, 0L)
  END AS offset,
  next IS NOT NULL
    OR told.offset <= coalesce(target_last + 1, 0L)
    OR told.offset <= coalesce(target_passed_end, 0L) AS exact,
  next IS NOT NULL OR target_last IS NOT NULL OR sampled_origin IS NOT NULL AS known,
  next IS NOT NULL AS ahead,
  name_origin IS NOT NULL AS mapped,
  coalesce(target_last + 1, 0L) AS mapped_end
FROM told
WHERE asks = 1
