-- The law of translation, backward: a target position goes to the source offset of the first mapped record at or behind
-- it on the target; behind all of them, to the position behind the last one, exactly if the position is not behind the
-- target's own end.
-- Frames: asked (topic on the target, partition, offset), runs (of offset_translation), samples (of positions).
-- One row per position asked.
WITH steps AS (
  SELECT target_topic AS name, target_partition AS partition, target_last AS at, 0 AS asks,
         struct(source_first, stride, target_first, topic) AS run
  FROM {runs}
  UNION ALL
  SELECT topic, partition, offset, 1, NULL
  FROM {asked}
),
ahead AS (
  SELECT name, partition, at AS offset, asks, last(run) IGNORE NULLS OVER (
    PARTITION BY name, partition ORDER BY at DESC, asks ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS next
  FROM steps
),
behind AS (
  SELECT target_topic AS name, target_partition AS partition, max(target_last) AS target_last,
         max_by(source_last, target_last) AS source_last, max_by(topic, target_last) AS topic
  FROM {runs}
  GROUP BY target_topic, target_partition
),
mapped AS (SELECT target_topic AS name, max_by(topic, target_last) AS topic FROM {runs} GROUP BY target_topic),
sample AS (
  SELECT target_topic AS name, partition, max(target_end) AS target_end, max_by(topic, sampled_at) AS topic,
         max_by(produced_end, sampled_at) AS produced_end
  FROM {samples}
  GROUP BY target_topic, partition
)
SELECT
  name AS asked_topic,
  partition,
  ahead.offset AS asked_offset,
  coalesce(next.topic, behind.topic, sample.topic, mapped.topic) AS topic,
  CASE
    WHEN next IS NOT NULL THEN next.source_first + greatest(0L, ahead.offset - next.target_first) * next.stride
    ELSE coalesce(behind.source_last + 1, sample.produced_end, 0L)
  END AS offset,
  next IS NOT NULL
    OR ahead.offset <= coalesce(behind.target_last + 1, 0L)
    OR ahead.offset <= coalesce(sample.target_end, 0L) AS exact,
  next IS NOT NULL OR behind.target_last IS NOT NULL OR sample.topic IS NOT NULL AS known,
  next IS NOT NULL AS ahead,
  mapped.topic IS NOT NULL AS mapped,
  coalesce(behind.target_last + 1, 0L) AS mapped_end
FROM ahead
LEFT JOIN behind USING (name, partition)
LEFT JOIN sample USING (name, partition)
LEFT JOIN mapped USING (name)
WHERE asks = 1
