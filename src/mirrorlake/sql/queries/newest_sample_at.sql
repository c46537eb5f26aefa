-- When a flow was sampled last, in ms since 1970; null where it never was. Samples of a time to come are of a clock that
-- was wrong, as in the view `replication_lag`. Parameters: flow.
SELECT max(unix_millis(sampled_at)) AS at
FROM positions
WHERE flow = :flow AND sampled_at < current_timestamp() + INTERVAL 5 MINUTES
