-- What each file of the stage holds of each partition: first and last offset, and how many records. Reads the
-- coordinates of the whole table.
SELECT _metadata.file_path AS path, source_cluster, topic, partition, coalesce(generation, 0) AS generation,
       min(offset) AS first, max(offset) AS last, count(*) AS record_count
FROM records
GROUP BY ALL
