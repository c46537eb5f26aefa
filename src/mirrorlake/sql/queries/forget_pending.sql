-- What was noted, and is not known to be deleted.
SELECT forget_id, source_cluster, topic, min(first_offset) AS first, max(last_offset) AS last,
       sum(record_count) AS record_count
FROM forgotten
WHERE deleted_at IS NULL
GROUP BY forget_id, source_cluster, topic
