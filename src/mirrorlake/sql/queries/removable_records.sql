-- How many records `remove_records` would delete. Frames: cuts (as lake.retention.Cut). Parameters: cutoff_ms.
SELECT count(*) AS record_count
FROM records JOIN {cuts} AS cuts
  ON records.source_cluster = cuts.source_cluster AND records.topic = cuts.topic AND records.partition = cuts.partition
  AND coalesce(records.generation, 0) = cuts.generation AND records.offset < cuts.below
WHERE records.landed_at < timestamp_millis(:cutoff_ms) AND records.batch_id < :cutoff_ms
