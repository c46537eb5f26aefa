-- Delete records that landed before a time, below an offset in each partition. batch_id, which is landed_at in ms, has
-- statistics: files that are too new are not opened. Frames: cuts (as lake.retention.Cut). Parameters: cutoff_ms.
MERGE INTO records
USING {cuts} AS cuts
ON records.source_cluster = cuts.source_cluster AND records.topic = cuts.topic AND records.partition = cuts.partition
  AND coalesce(records.generation, 0) = cuts.generation AND records.offset < cuts.below
  AND records.landed_at < timestamp_millis(:cutoff_ms) AND records.batch_id < :cutoff_ms
WHEN MATCHED THEN DELETE
