-- How many records of other topics a predicate picks. Frames: matching (the rows that are picked).
SELECT source_cluster, topic, count(*) AS record_count
FROM {matching}
GROUP BY source_cluster, topic
