-- Note what is about to be deleted of the stage, as ranges. Frames: picked (as forget_picked gives it). Parameters:
-- source_cluster, forget_id.
INSERT INTO forgotten (source_cluster, topic, partition, generation, first_offset, last_offset, record_count, forget_id,
                       noted_at)
SELECT :source_cluster, topic, partition, generation, min(offset), max(offset), count(*), :forget_id, current_timestamp()
FROM (
  SELECT topic, partition, generation, offset,
         offset - row_number() OVER (PARTITION BY topic, partition, generation ORDER BY offset) AS island
  FROM {picked}
  WHERE NOT waits
)
GROUP BY topic, partition, generation, island
