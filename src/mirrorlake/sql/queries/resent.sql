-- How many records of a flow, or of a resend, are at its target topics. Parameters: flow.
SELECT target_topic, CAST(sum(record_count) AS BIGINT) AS record_count
FROM offset_map
WHERE flow = :flow
GROUP BY target_topic
