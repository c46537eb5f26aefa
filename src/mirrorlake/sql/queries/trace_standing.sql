-- How a flow stands now: what it is to do, by its objectives, its newest sample, if that is younger than two hours, and
-- after how many seconds without one it is not running; samples of a time to come count as in the view `replication_lag`.
-- Parameters: flow, topic.
WITH newest AS (
  SELECT max(sampled_at) AS sampled_at,
         max_by(greatest(60, 3 * coalesce(interval_seconds, 10)), sampled_at) AS quiet_seconds
  FROM positions
  WHERE flow = :flow AND sampled_at > current_timestamp() - INTERVAL 2 HOURS
    AND sampled_at < current_timestamp() + INTERVAL 5 MINUTES
),
told AS (
  SELECT coalesce(enabled, true) AS enabled, mode, coalesce(:topic RLIKE paused, false) AS is_paused
  FROM objectives
  WHERE flow = :flow
)
SELECT told.enabled, told.mode, told.is_paused, newest.sampled_at, newest.quiet_seconds
FROM newest LEFT JOIN told ON true
