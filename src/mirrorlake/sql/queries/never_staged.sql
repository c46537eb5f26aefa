-- Source offsets that were there at the newest sample and were not staged by then, those behind an open transaction
-- included. Parameters: flow.
SELECT topic, partition, staged_end AS first_offset, greatest(source_end, coalesce(source_high_watermark, 0L)) - 1
       AS last_offset, sampled_at
FROM replication_lag
WHERE flow = :flow AND greatest(source_end, coalesce(source_high_watermark, 0L)) > staged_end
ORDER BY topic, partition
