-- What is about to be deleted of the stage, as rows of `forgotten`. Frames: picked (as forget_picked gives it).
-- Parameters: source_cluster, forget_id.
SELECT :source_cluster AS source_cluster, topic, partition, generation, min(offset) AS first_offset,
       max(offset) AS last_offset, count(*) AS record_count, :forget_id AS forget_id, current_timestamp() AS noted_at
FROM (
  SELECT topic, partition, generation, offset,
         offset - dense_rank() OVER (PARTITION BY topic, partition, generation ORDER BY offset) AS island
  FROM {picked}
  WHERE NOT waits
)
GROUP BY topic, partition, generation, island
