-- The newest comparisons of a flow by content: each range, its verdict, what was counted on each side, and what was left
-- out, by reason. Parameters: flow.
SELECT audited_at, topic, partition, first_offset, last_offset, verdict, source_count, stage_count, target_count,
       excused, byte_count
FROM audits
WHERE flow = :flow
ORDER BY audited_at DESC, topic, partition, first_offset
LIMIT 100
