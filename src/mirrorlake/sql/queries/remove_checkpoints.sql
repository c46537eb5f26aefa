-- Delete checkpoints of groups made before a time; the newest of every group and partition stays. Parameters: cutoff_ms.
MERGE INTO checkpoints AS old
USING (
  SELECT flow, group_id, topic, partition, max(checkpointed_at) AS newest_at
  FROM checkpoints
  GROUP BY flow, group_id, topic, partition
) AS kept
ON old.flow = kept.flow AND old.group_id = kept.group_id AND old.topic = kept.topic AND old.partition = kept.partition
  AND old.checkpointed_at < timestamp_millis(:cutoff_ms) AND old.checkpointed_at < kept.newest_at
WHEN MATCHED THEN DELETE
