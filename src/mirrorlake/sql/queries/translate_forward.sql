-- The law of translation, forward: a source position goes to the target offset of the first mapped record at or behind
-- it. Without such a record the position is behind all that is mapped: it goes behind the last one, exactly if nothing
-- staged or to be staged lies in between (covered). A position is one in the newest life of its topic, since the offsets
-- of elder ones are no more. Parameters: flow, topic, partition, offset.
WITH lives AS (
  SELECT generation, started_at
  FROM generations
  WHERE source_cluster = split(:flow, '->')[0] AND topic = :topic AND generation > 0
  UNION ALL
  SELECT generation, CAST(NULL AS TIMESTAMP)
  FROM offset_translation
  WHERE flow = :flow AND topic = :topic
),
newest AS (SELECT coalesce(max(generation), 0) AS generation, max(started_at) AS began FROM lives),
ahead AS (
  SELECT min_by(struct(*), source_first) AS next
  FROM offset_translation
  WHERE flow = :flow AND topic = :topic AND partition = :partition
    AND generation = (SELECT generation FROM newest)
    AND run_source_last >= :offset AND source_last >= :offset
),
behind AS (
  SELECT max_by(struct(*), source_last) AS last
  FROM offset_translation
  WHERE flow = :flow AND topic = :topic AND partition = :partition
    AND generation = (SELECT generation FROM newest)
),
elder AS (
  SELECT max_by(struct(*), target_last) AS last
  FROM offset_translation
  WHERE flow = :flow AND topic = :topic AND partition = :partition
),
sample AS (
  SELECT max(produced_end) AS produced_end, max_by(target_topic, sampled_at) AS target_topic
  FROM positions
  WHERE flow = :flow AND topic = :topic AND partition = :partition
    AND sampled_at >= coalesce((SELECT began FROM newest), TIMESTAMP '1970-01-01')
)
SELECT
  coalesce(ahead.next.target_topic, elder.last.target_topic, sample.target_topic) AS topic,
  :partition AS partition,
  CASE
    WHEN ahead.next IS NOT NULL THEN ahead.next.target_first + greatest(
      0L, (:offset - ahead.next.source_first + ahead.next.stride - 1) DIV ahead.next.stride)
    ELSE coalesce(behind.last.target_last, elder.last.target_last, -1L) + 1
  END AS offset,
  ahead.next IS NOT NULL
    OR :offset <= coalesce(behind.last.source_last + 1, 0L)
    OR :offset <= coalesce(sample.produced_end, 0L) AS exact,
  ahead.next IS NOT NULL OR elder.last IS NOT NULL OR sample.target_topic IS NOT NULL AS known
FROM ahead CROSS JOIN behind CROSS JOIN elder CROSS JOIN sample
