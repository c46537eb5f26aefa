-- Delete samples taken before a time, but for the newest one of every partition, which translation, lag and landing go by,
-- and of each generation the first one of those with the lowest start: by it landing knows where its log began.
-- Parameters: cutoff_ms.
MERGE INTO positions AS old
USING (
  SELECT flow, topic, partition, of_generation, first_at,
         max(newest_at) OVER (PARTITION BY flow, topic, partition) AS newest_at
  FROM (
    SELECT flow, topic, partition, coalesce(generation, 0) AS of_generation,
           min(CASE WHEN source_end IS NOT NULL THEN struct(source_start, sampled_at) END).sampled_at AS first_at,
           max(CASE WHEN source_end IS NOT NULL THEN sampled_at END) AS newest_at
    FROM positions
    GROUP BY flow, topic, partition, coalesce(generation, 0)
  )
) AS kept
ON old.flow = kept.flow AND old.topic = kept.topic AND old.partition = kept.partition
  AND coalesce(old.generation, 0) = kept.of_generation
  AND old.sampled_at < timestamp_millis(:cutoff_ms) AND old.sampled_at < kept.newest_at
  AND (kept.first_at IS NULL OR old.sampled_at <> kept.first_at)
WHEN MATCHED THEN DELETE
