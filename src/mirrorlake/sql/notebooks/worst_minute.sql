-- The minute with the highest p99, as text; heartbeats, which wait for each other, aside. Parameters: flow, topic (or
-- empty), since, until.
SELECT date_format(at, 'yyyy-MM-dd HH:mm:ss.SSSXXX') AS minute, p99_ms AS replication_p99_ms
FROM (
  SELECT minute AS at, max(replication_p99_ms) AS p99_ms
  FROM replication_latency
  WHERE flow = :flow
    AND (topic = :topic OR :topic = '' AND NOT topic RLIKE
      (SELECT coalesce(max(heartbeat_topics), '^heartbeats$') FROM objectives WHERE flow = :flow))
    AND minute >= date_trunc('MINUTE', CAST(:since AS TIMESTAMP))
    AND minute <= CAST(:until AS TIMESTAMP)
  GROUP BY minute
)
ORDER BY p99_ms DESC NULLS LAST, at
LIMIT 1
