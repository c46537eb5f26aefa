-- The law of translation, forward: a source position goes to the target offset of the first mapped record at or behind
-- it. Without such a record the position is behind all that is mapped: it goes behind the last one, exactly if nothing
-- staged or to be staged lies in between (covered). A position is one in the newest life of its topic, since the offsets
-- of elder ones are no more. A sample with mapped_end counts only once the map has come that far.
-- Frames: asked (topic, partition, offset), runs (of offset_translation, all that the positions can need), samples (of
-- positions). Parameters: flow. One row per position asked.
WITH lives AS (
  SELECT topic, generation, started_at
  FROM generations
  WHERE source_cluster = split(:flow, '->')[0] AND generation > 0
  UNION ALL
  SELECT topic, generation, CAST(NULL AS TIMESTAMP)
  FROM {runs}
),
newest AS (SELECT topic, max(generation) AS generation, max(started_at) AS began FROM lives GROUP BY topic),
living AS (SELECT runs.* FROM {runs} AS runs JOIN newest USING (topic, generation)),
-- One pass down the offsets of a partition: the last run met is the first one at or behind the position.
steps AS (
  SELECT topic, partition, source_last AS at, 0 AS asks, struct(source_first, stride, target_first, target_topic) AS run
  FROM living
  UNION ALL
  SELECT topic, partition, offset, 1, NULL
  FROM {asked}
),
ahead AS (
  SELECT topic, partition, at AS offset, asks, last(run) IGNORE NULLS OVER (
    PARTITION BY topic, partition ORDER BY at DESC, asks ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS next
  FROM steps
),
behind AS (
  SELECT topic, partition, max(source_last) AS source_last, max(target_last) AS target_last
  FROM living
  GROUP BY topic, partition
),
elder AS (
  SELECT topic, partition, max(target_last) AS target_last, max_by(target_topic, target_last) AS target_topic
  FROM {runs}
  GROUP BY topic, partition
),
mapped AS (SELECT topic, max_by(target_topic, target_last) AS target_topic FROM {runs} GROUP BY topic),
sample AS (
  SELECT samples.topic, partition, max(produced_end) AS produced_end, max(mapped_end) AS mapped_end,
         max_by(target_topic, sampled_at) AS target_topic
  FROM {samples} AS samples LEFT JOIN newest ON samples.topic = newest.topic
  WHERE sampled_at >= coalesce(began, TIMESTAMP '1970-01-01')
  GROUP BY samples.topic, partition
)
SELECT
  topic AS asked_topic,
  partition,
  ahead.offset AS asked_offset,
  coalesce(next.target_topic, elder.target_topic, sample.target_topic, mapped.target_topic) AS topic,
  CASE
    WHEN next IS NOT NULL
      THEN next.target_first + greatest(0L, (ahead.offset - next.source_first + next.stride - 1) DIV next.stride)
    ELSE coalesce(behind.target_last, elder.target_last, -1L) + 1
  END AS offset,
  next IS NOT NULL
    OR ahead.offset <= coalesce(behind.source_last + 1, 0L)
    OR ahead.offset <= coalesce(sample.produced_end, 0L)
      AND coalesce(behind.source_last + 1, 0L) >= coalesce(sample.mapped_end, 0L) AS exact,
  next IS NOT NULL OR elder.target_last IS NOT NULL OR sample.target_topic IS NOT NULL AS known,
  next IS NOT NULL AS ahead,
  mapped.target_topic IS NOT NULL AS mapped,
  coalesce(behind.source_last + 1, 0L) AS mapped_end
FROM ahead
LEFT JOIN behind USING (topic, partition)
LEFT JOIN elder USING (topic, partition)
LEFT JOIN sample USING (topic, partition)
LEFT JOIN mapped USING (topic)
WHERE asks = 1
