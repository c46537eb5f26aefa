-- Delete samples taken before a time; the newest of every partition stays, since translation and landing go by it.
-- Parameters: cutoff_ms.
MERGE INTO positions AS old
USING (
  SELECT flow, topic, partition, max(sampled_at) AS newest_at FROM positions GROUP BY flow, topic, partition
) AS kept
ON old.flow = kept.flow AND old.topic = kept.topic AND old.partition = kept.partition
  AND old.sampled_at < timestamp_millis(:cutoff_ms) AND old.sampled_at < kept.newest_at
WHEN MATCHED THEN DELETE
