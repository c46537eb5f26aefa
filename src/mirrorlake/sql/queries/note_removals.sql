-- Note what is about to be deleted of the stage. Frames: removals (as lake.retention.Removal).
MERGE INTO removals AS known
USING {removals} AS now
ON known.source_cluster = now.source_cluster AND known.topic = now.topic AND known.partition = now.partition
  AND known.generation = now.generation
WHEN MATCHED THEN UPDATE SET first_offset = least(known.first_offset, now.first_offset),
  below = greatest(known.below, now.below), removed_at = current_timestamp()
WHEN NOT MATCHED THEN INSERT (source_cluster, topic, partition, generation, first_offset, below, removed_at)
  VALUES (now.source_cluster, now.topic, now.partition, now.generation, now.first_offset, now.below, current_timestamp())
