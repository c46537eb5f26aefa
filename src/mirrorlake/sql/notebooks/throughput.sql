-- Records per minute and topic. Parameters: flow, since, until.
SELECT minute, topic, record_count, byte_count, records_per_second
FROM throughput
WHERE flow = :flow AND minute >= date_trunc('MINUTE', CAST(:since AS TIMESTAMP)) AND minute <= CAST(:until AS TIMESTAMP)
ORDER BY minute, topic
