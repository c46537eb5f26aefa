-- How many records of other topics a predicate picks. Frames: found (the rows that are picked).
SELECT source_cluster, topic, count(*) AS record_count
FROM {found}
GROUP BY source_cluster, topic
