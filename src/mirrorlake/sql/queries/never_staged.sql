-- Source offsets that were there when each partition was sampled last and were not staged by then, those behind an open
-- transaction included. Of a partition that could not be sampled at the end, what was known before counts as long as an
-- incident says that it cannot be read: clusters go down broker by broker. One that is gone, or not selected any more, has
-- no such incident. However long ago that was, so it reads all samples of the flow. Parameters: flow.
WITH past AS (
  SELECT topic, partition, sampled_at, source_end, staged_end, source_high_watermark, max(sampled_at) OVER () AS sign_at
  FROM positions
  WHERE flow = :flow AND sampled_at < current_timestamp() + INTERVAL 5 MINUTES
),
newest AS (
  SELECT topic, partition, max(sign_at) AS sign_at, max(sampled_at) AS noted_at,
         max(CASE WHEN source_end IS NOT NULL THEN sampled_at END) AS known_at,
         max_by(struct(source_end, staged_end, source_high_watermark),
                CASE WHEN source_end IS NOT NULL THEN sampled_at END) AS sample
  FROM past
  GROUP BY topic, partition
),
ends AS (
  SELECT topic, partition, sample.staged_end AS staged_end,
         greatest(sample.source_end, coalesce(sample.source_high_watermark, 0L)) AS source_end,
         CASE WHEN noted_at = known_at THEN sign_at ELSE known_at END AS sampled_at,
         noted_at = known_at AND noted_at > sign_at - INTERVAL 65 MINUTES OR noted_at > sign_at - INTERVAL 5 MINUTES
           AS is_read
  FROM newest
  WHERE known_at IS NOT NULL
),
unread AS (
  SELECT DISTINCT topic, partition
  FROM incidents
  WHERE flow = :flow AND kind = 'source_refused' AND topic IS NOT NULL AND resolved_at IS NULL
)
SELECT topic, partition, staged_end AS first_offset, source_end - 1 AS last_offset, sampled_at
FROM ends
WHERE source_end > staged_end
  AND (is_read OR EXISTS (
    SELECT 1 FROM unread
    WHERE unread.topic = ends.topic AND (unread.partition IS NULL OR unread.partition = ends.partition)))
ORDER BY topic, partition
