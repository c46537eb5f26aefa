-- How much of each topic of a flow is proven by content, the least first. Parameters: flow.
SELECT flow, topic, mapped_records, proven_records, proven_share, differing_ranges, proven_since, audited_at
FROM proof_status
WHERE flow = :flow
ORDER BY proven_share, topic
