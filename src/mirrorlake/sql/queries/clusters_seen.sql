-- Note which cluster each alias is now. Frames: seen (alias, cluster_id, seen).
MERGE INTO clusters AS known
USING {seen} AS now
ON known.alias = now.alias AND known.cluster_id = now.cluster_id
WHEN MATCHED THEN UPDATE SET last_seen = now.seen
WHEN NOT MATCHED THEN INSERT (alias, cluster_id, first_seen, last_seen)
  VALUES (now.alias, now.cluster_id, now.seen, now.seen)
