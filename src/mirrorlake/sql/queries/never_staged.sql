-- Source offsets that were there at the newest sample and were not staged by then. Parameters: flow.
SELECT topic, partition, staged_end AS first_offset, source_end - 1 AS last_offset, sampled_at
FROM replication_lag
WHERE flow = :flow AND source_end > staged_end
ORDER BY topic, partition
