-- What control did or was refused for a topic or a whole flow in a time. Parameters: flow, target_topic, since_ms,
-- until_ms.
SELECT at, kind, resource, before, after, outcome, error
FROM changes
WHERE flow = :flow AND at BETWEEN timestamp_millis(:since_ms) AND timestamp_millis(:until_ms)
  AND (kind = 'topology' OR kind IN ('topic', 'partitions', 'config') AND resource = :target_topic)
ORDER BY at, kind, resource
LIMIT 50
