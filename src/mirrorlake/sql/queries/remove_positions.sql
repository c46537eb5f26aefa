-- Delete samples taken before a time, but for the newest one of every partition, which translation, lag and landing go by.
-- Parameters: cutoff_ms.
MERGE INTO positions AS old
USING (
  SELECT flow, topic, partition, max(CASE WHEN source_end IS NOT NULL THEN sampled_at END) AS newest_at
  FROM positions
  GROUP BY flow, topic, partition
) AS kept
ON old.flow = kept.flow AND old.topic = kept.topic AND old.partition = kept.partition
  AND old.sampled_at < timestamp_millis(:cutoff_ms) AND old.sampled_at < kept.newest_at
WHEN MATCHED THEN DELETE
