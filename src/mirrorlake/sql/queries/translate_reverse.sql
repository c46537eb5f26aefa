-- The law of translation, backward: a target position goes to the source offset of the first mapped record at or behind
-- it on the target; behind all of them, to the position behind the last one, exactly if nothing of the flow lies in
-- between: a sample says so (target_passed_end) once the map has come as far as it says (mapped_end), in the generation of
-- the source topic that the sample is of; not one of before it was decided what becomes of records that the target has
-- lost there, in whose place others are, nor one of a time to come, by a clock that was wrong, which may be.
-- `generation` is the one that the source position is of, newest or not: history is told; null where nothing says so. What is
-- said of a target topic is of its living generation; without one every position leads to the start, and none exactly, as in
-- translate_forward.sql.
-- Frames: asked (topic on the target, partition, offset), runs (of offset_translation), samples (of positions).
-- Parameters: flow. One row per position asked. All goes through one pass, as in translate_forward.sql.
WITH losses AS (
  SELECT topic, partition, coalesce(target_generation, 0) AS target_generation,
         collect_list(struct(target_topic, coalesce(resolved_at, TIMESTAMP '9999-12-31') AS until)) AS losses
  FROM incidents
  WHERE flow = :flow AND kind = 'target_lost'
  GROUP BY topic, partition, coalesce(target_generation, 0)
),
sampled AS (
  SELECT samples.*, array_max(transform(
           filter(losses, loss -> coalesce(loss.target_topic, samples.target_topic) = samples.target_topic),
           loss -> loss.until)) AS until
  FROM {samples} AS samples
    LEFT JOIN losses ON losses.topic = samples.topic AND losses.partition = samples.partition
    AND losses.target_generation = coalesce(samples.target_generation, 0)
),
steps AS (
  SELECT target_topic AS name, target_partition AS partition, target_last AS at, 0 AS asks,
         struct(source_first, source_last, stride, target_first, topic, generation) AS run, NULL AS sample,
         NULL AS target
  FROM {runs}
  UNION ALL
  SELECT topic, partition, offset, 1, NULL, NULL, NULL
  FROM {asked}
  UNION ALL
  SELECT target_topic, partition, NULL, 0, NULL,
         struct(sampled_at, IF(until IS NULL OR sampled_at > until AND sampled_at < current_timestamp() + INTERVAL 5 MINUTES,
                               target_passed_end, NULL) AS target_passed_end,
                mapped_end, produced_end, topic, coalesce(target_generation, 0) AS target_generation, generation),
         NULL
  FROM sampled
  UNION ALL
  SELECT target_topic, NULL, NULL, 0, NULL, NULL, struct(started_at, topic, target_generation, partitions, lives)
  FROM living_targets
  WHERE flow = :flow
),
noted AS (
  SELECT *, IF(run IS NULL, NULL, at) AS target_last,
         max_by(run.topic, IF(run IS NULL, NULL, at)) OVER whole_topic AS name_origin,
         max_by(target, target.started_at) OVER whole_topic AS newest_target
  FROM steps
  WINDOW whole_topic AS (PARTITION BY name)
),
ended AS (
  SELECT *, max_by(run.source_last, IF(run IS NULL, NULL, at)) OVER whole_partition + 1 AS map_end,
         max_by(run.generation, IF(run IS NULL, NULL, at)) OVER whole_partition AS map_generation
  FROM noted
  WINDOW whole_partition AS (PARTITION BY name, partition)
),
weighed AS (
  SELECT *, coalesce(sample.mapped_end, sample.produced_end)
             <= IF(coalesce(sample.generation > map_generation, false), 0L, coalesce(map_end, 0L))
           AND (newest_target IS NULL
                OR newest_target.lives AND newest_target.target_generation = sample.target_generation) AS counts
  FROM ended
),
told AS (
  SELECT
    name, partition, at AS offset, asks, name_origin, newest_target, map_end, map_generation,
    last(run) IGNORE NULLS OVER (
      PARTITION BY name, partition ORDER BY at DESC, asks ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS next,
    max(target_last) OVER whole_partition AS target_last,
    max_by(run.topic, target_last) OVER whole_partition AS partition_origin,
    max(IF(counts, sample.target_passed_end, NULL)) OVER whole_partition AS target_passed_end,
    max_by(sample.topic, sample.sampled_at) OVER whole_partition AS sampled_origin,
    max_by(sample.produced_end, IF(counts, sample.sampled_at, NULL)) OVER whole_partition AS produced_end,
    max_by(sample.generation, IF(counts, sample.sampled_at, NULL)) OVER whole_partition AS sampled_generation
  FROM weighed
  WINDOW whole_partition AS (PARTITION BY name, partition)
)
SELECT
  name AS asked_topic,
  partition,
  offset AS asked_offset,
  coalesce(next.topic, partition_origin, sampled_origin, name_origin, newest_target.topic) AS topic,
  CASE
    WHEN next IS NOT NULL THEN next.source_first + greatest(0L, told.offset - next.target_first) * next.stride
    ELSE coalesce(map_end, produced_end, 0L)
  END AS offset,
  coalesce(newest_target.lives, true) AND (
    next IS NOT NULL
    OR told.offset <= coalesce(target_last + 1, 0L)
    OR told.offset <= coalesce(target_passed_end, 0L)) AS exact,
  next IS NOT NULL OR target_last IS NOT NULL OR sampled_origin IS NOT NULL
    OR coalesce(partition < newest_target.partitions, false) AS known,
  next IS NOT NULL AS ahead,
  name_origin IS NOT NULL AS mapped,
  coalesce(target_last + 1, 0L) AS mapped_end,
  coalesce(next.generation, map_generation, sampled_generation) AS generation
FROM told
WHERE asks = 1
