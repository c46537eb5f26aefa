-- When nobody ran a flow, in a time: the pairs of samples, one behind the other, with more than gap_ms or three intervals
-- between them. A pause that began before the time counts if the sample in front of it is at most a week older.
-- Parameters: flow, since_ms, until_ms, gap_ms.
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
SELECT since, until
FROM steps
WHERE unix_millis(until) - unix_millis(since) > quiet_ms
ORDER BY since
