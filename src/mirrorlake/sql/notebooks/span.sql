-- The time to look at, as text with its zone: what was asked for, else the hour up to the newest batch of a flow that is not
-- of a time to come, by a clock that was wrong. Parameters: flow, since, until (texts; empty is not asked for).
WITH newest AS (
  SELECT max(produced_at) AS at
  FROM latency
  WHERE flow = :flow AND produced_at < current_timestamp() + INTERVAL 5 MINUTES
),
found AS (
  SELECT coalesce(try_cast(nullif(:until, '') AS TIMESTAMP), at + INTERVAL 1 SECOND, current_timestamp()) AS until FROM newest
)
SELECT
  date_format(coalesce(try_cast(nullif(:since, '') AS TIMESTAMP), until - INTERVAL 1 HOUR), 'yyyy-MM-dd HH:mm:ss.SSSXXX')
    AS since,
  date_format(until, 'yyyy-MM-dd HH:mm:ss.SSSXXX') AS until,
  (:since <> '' AND try_cast(:since AS TIMESTAMP) IS NULL) OR (:until <> '' AND try_cast(:until AS TIMESTAMP) IS NULL)
    AS wrong
FROM found
