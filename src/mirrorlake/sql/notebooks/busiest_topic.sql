-- The topic of a flow with the most records, heartbeats aside. Parameters: flow.
SELECT topic
FROM (SELECT topic, sum(record_count) AS records FROM partition_status WHERE flow = :flow GROUP BY topic)
ORDER BY topic RLIKE (SELECT coalesce(max(heartbeat_topics), '^heartbeats$') FROM objectives WHERE flow = :flow),
  records DESC, topic
LIMIT 1
