-- Replication latency per minute, of one topic or (empty) of all but heartbeats. Parameters: flow, topic, since,
-- until.
SELECT minute, sum(record_count) AS record_count, max(landing_p99_ms) AS landing_p99_ms,
       max(replication_p50_ms) AS replication_p50_ms, max(replication_p95_ms) AS replication_p95_ms,
       max(replication_p99_ms) AS replication_p99_ms
FROM replication_latency
WHERE flow = :flow
  AND (topic = :topic OR :topic = '' AND NOT topic RLIKE
    (SELECT coalesce(max(heartbeat_topics), '^heartbeats$') FROM objectives WHERE flow = :flow))
  AND minute >= date_trunc('MINUTE', CAST(:since AS TIMESTAMP))
  AND minute <= CAST(:until AS TIMESTAMP)
GROUP BY minute
ORDER BY minute
