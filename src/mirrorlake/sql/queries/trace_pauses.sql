-- When no process ran a flow, in a time: the pairs of samples, one behind the other, with more than gap_ms or three intervals
-- between them. A pause that began before the time counts if the sample in front of it is at most a week older; where
-- there is none in that week, the flow was started before the first sample in the time (`is_first`).
-- Parameters: flow, since_ms, until_ms, gap_ms, first_gap_ms.
WITH before AS (
  SELECT max(sampled_at) AS at, max_by(interval_seconds, sampled_at) AS interval_seconds
  FROM positions
  WHERE flow = :flow AND sampled_at <= timestamp_millis(:since_ms)
    AND sampled_at > timestamp_millis(:since_ms) - INTERVAL 7 DAYS
),
sampled AS (
  SELECT DISTINCT sampled_at, interval_seconds
  FROM positions
  WHERE flow = :flow AND sampled_at BETWEEN timestamp_millis(:since_ms) AND timestamp_millis(:until_ms)
  UNION
  SELECT at, interval_seconds FROM before WHERE at IS NOT NULL
),
steps AS (
  SELECT sampled_at AS since, lead(sampled_at) OVER (ORDER BY sampled_at, interval_seconds) AS until,
         greatest(:gap_ms, 3000 * coalesce(interval_seconds, 10)) AS quiet_ms
  FROM sampled
)
SELECT since, until, false AS is_first
FROM steps
WHERE unix_millis(until) - unix_millis(since) > quiet_ms
UNION ALL
SELECT timestamp_millis(:since_ms), at, true
FROM (SELECT min(sampled_at) AS at FROM sampled)
WHERE unix_millis(at) - :since_ms > :first_gap_ms AND NOT EXISTS (SELECT 1 FROM before WHERE at IS NOT NULL)
ORDER BY since
