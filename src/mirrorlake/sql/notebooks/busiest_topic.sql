-- The topic of a flow with the most records, heartbeats aside. Parameters: flow.
SELECT topic
FROM (SELECT topic, sum(record_count) AS records FROM partition_status WHERE flow = :flow GROUP BY topic)
ORDER BY topic = 'heartbeats', records DESC, topic
LIMIT 1
