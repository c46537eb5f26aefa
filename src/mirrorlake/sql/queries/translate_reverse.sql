-- The law of translation, backward: a target position goes to the source offset of the first mapped record at or behind
-- it on the target; behind all of them, to the position behind the last one, exactly if the position is not behind the
-- target's own end. Parameters: flow, topic (on the target), partition, offset.
WITH ahead AS (
  SELECT min_by(struct(*), target_first) AS next
  FROM offset_translation
  WHERE flow = :flow AND target_topic = :topic AND target_partition = :partition
    AND run_target_last >= :offset AND target_last >= :offset
),
behind AS (
  SELECT max_by(struct(*), target_last) AS last
  FROM offset_translation
  WHERE flow = :flow AND target_topic = :topic AND target_partition = :partition
),
sample AS (
  SELECT max(target_end) AS target_end, max_by(topic, sampled_at) AS topic, max_by(produced_end, sampled_at) AS produced_end
  FROM positions
  WHERE flow = :flow AND target_topic = :topic AND partition = :partition
)
SELECT
  coalesce(ahead.next.topic, behind.last.topic, sample.topic) AS topic,
  :partition AS partition,
  CASE
    WHEN ahead.next IS NOT NULL
      THEN ahead.next.source_first + greatest(0L, :offset - ahead.next.target_first) * ahead.next.stride
    ELSE coalesce(behind.last.source_last + 1, sample.produced_end, 0L)
  END AS offset,
  ahead.next IS NOT NULL
    OR :offset <= coalesce(behind.last.target_last + 1, 0L)
    OR :offset <= coalesce(sample.target_end, 0L) AS exact,
  ahead.next IS NOT NULL OR behind.last IS NOT NULL OR sample.topic IS NOT NULL AS known
FROM ahead CROSS JOIN behind CROSS JOIN sample
