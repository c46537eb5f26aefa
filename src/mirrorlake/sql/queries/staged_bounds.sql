-- What the stage holds of every generation of every partition, and how far it was landed before two times: what is old
-- enough to be deleted, and what disabled flows do not hold back any more. Records that were read again landed later than
-- those behind them, which stay as long: a flow finds a hole in front of what the stage holds, and none within it.
-- Reads the coordinates of all of it. Parameters: cutoff_ms, released_ms.
SELECT source_cluster, topic, partition, generation, first, last,
       CASE WHEN young > first THEN least(old, young - 1) WHEN young IS NULL THEN old END AS old_last,
       CASE WHEN held > first THEN least(released, held - 1) WHEN held IS NULL THEN released END AS released_last
FROM (
  SELECT source_cluster, topic, partition, coalesce(generation, 0) AS generation, min(offset) AS first, max(offset) AS last,
         max(CASE WHEN landed_at < timestamp_millis(:cutoff_ms) THEN offset END) AS old,
         min(CASE WHEN landed_at >= timestamp_millis(:cutoff_ms) THEN offset END) AS young,
         max(CASE WHEN landed_at < timestamp_millis(:released_ms) THEN offset END) AS released,
         min(CASE WHEN landed_at >= timestamp_millis(:released_ms) THEN offset END) AS held
  FROM records
  GROUP BY source_cluster, topic, partition, coalesce(generation, 0)
)
