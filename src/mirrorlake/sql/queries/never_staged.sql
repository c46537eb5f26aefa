-- Source offsets that were there when each partition was sampled last and were not staged by then, those behind an open
-- transaction included. Of a partition that could not be sampled at the end, what was known before counts as long as an
-- incident says that it cannot be read: clusters go down broker by broker. One that is gone, or not selected any more, has
-- no such incident. However long ago that was, so it reads all samples of the flow. Where the source has another log than
-- the one that was staged, until an operator lets the flow go on with it, all of that log counts: from 0 on in a topic that
-- was made again, and from where it went back in a partition. Parameters: flow.
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
),
begun AS (
  SELECT topic, partition, max(generation) AS generation, max(started_at) AS began
  FROM generations
  WHERE source_cluster = split(:flow, '->')[0] AND generation > 0
  GROUP BY topic, partition
),
replaced AS (
  SELECT topic, partition, CASE WHEN kind = 'source_rewound' THEN coalesce(first_offset, 0L) ELSE 0L END AS since
  FROM incidents
  WHERE split(flow, '->')[0] = split(:flow, '->')[0] AND (resolved_at IS NULL OR resolution = 'stop')
    AND (kind = 'topic_recreated' OR kind = 'source_rewound' AND NOT EXISTS (
      SELECT 1 FROM begun
      WHERE begun.topic = incidents.topic AND (begun.partition IS NULL OR begun.partition = incidents.partition)
        AND coalesce(begun.generation > incidents.generation, begun.began > incidents.at)))
),
unstaged AS (
  SELECT ends.topic, ends.partition, coalesce(min(since), staged_end) AS first_offset, source_end, sampled_at, is_read
  FROM ends LEFT JOIN replaced
    ON replaced.topic = ends.topic AND (replaced.partition IS NULL OR replaced.partition = ends.partition)
  GROUP BY ends.topic, ends.partition, staged_end, source_end, sampled_at, is_read
)
SELECT topic, partition, first_offset, source_end - 1 AS last_offset, sampled_at
FROM unstaged
WHERE source_end > first_offset
  AND (is_read OR EXISTS (
    SELECT 1 FROM unread
    WHERE unread.topic = unstaged.topic AND (unread.partition IS NULL OR unread.partition = unstaged.partition)))
ORDER BY topic, partition
