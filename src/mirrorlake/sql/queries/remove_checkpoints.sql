-- Delete checkpoints of groups made before a time; of every group and partition the newest of them stays, which says where it
-- stood from then on, whatever came since. Parameters: cutoff_ms.
MERGE INTO checkpoints AS old
USING (
  SELECT flow, group_id, topic, partition, max(checkpointed_at) AS newest_at
  FROM checkpoints
  WHERE checkpointed_at < timestamp_millis(:cutoff_ms)
  GROUP BY flow, group_id, topic, partition
) AS kept
ON old.flow = kept.flow AND old.group_id = kept.group_id AND old.topic = kept.topic AND old.partition = kept.partition
  AND old.checkpointed_at < kept.newest_at
WHEN MATCHED THEN DELETE
