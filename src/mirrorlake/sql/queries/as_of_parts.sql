-- What the landed batches of a cluster hold of each generation of each partition, as offsets/as_of.py asks for it:
-- batches of a window one by one, those before and those after it as one each (batch -1, and 2^62). late_first is the
-- first record that the time leaves out, newest_ms the newest time of the others. Reads coordinates of all of the stage.
-- Parameters: source_cluster, until_ms, first_ms, last_ms (the window, inclusive).
WITH placed AS (
  SELECT topic, partition, coalesce(generation, 0) AS generation, offset, batch_end,
         coalesce(timestamp_ms, unix_millis(timestamp)) AS stamped_ms,
         batch_id > :until_ms AND coalesce(timestamp_ms, unix_millis(timestamp)) > :until_ms AS is_late,
         CASE WHEN batch_id < :first_ms THEN -1L WHEN batch_id > :last_ms THEN 4611686018427387904L ELSE batch_id END AS batch
  FROM records
  WHERE source_cluster = :source_cluster
)
SELECT topic, partition, generation, batch, min(offset) AS first, max(offset) AS last, count(*) AS record_count,
       max(batch_end) AS batch_end, min(CASE WHEN is_late THEN offset END) AS late_first,
       max(CASE WHEN is_late THEN NULL ELSE stamped_ms END) AS newest_ms
FROM placed
GROUP BY topic, partition, generation, batch
