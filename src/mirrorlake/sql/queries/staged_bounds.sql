-- What the stage holds of every generation of every partition, and how far it was landed before two times: what is old
-- enough to be deleted, and what disabled flows do not hold back any more. Reads the coordinates of all of it.
-- Parameters: cutoff_ms, released_ms.
SELECT source_cluster, topic, partition, coalesce(generation, 0) AS generation, min(offset) AS first, max(offset) AS last,
       max(CASE WHEN landed_at < timestamp_millis(:cutoff_ms) THEN offset END) AS old_last,
       max(CASE WHEN landed_at < timestamp_millis(:released_ms) THEN offset END) AS released_last
FROM records
GROUP BY source_cluster, topic, partition, coalesce(generation, 0)
