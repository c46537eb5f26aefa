-- Note the objectives of flows, and how they run. A row whose mode is null says nothing about that.
-- Frames: objectives_now (the columns of objectives except the times).
MERGE INTO objectives AS known
USING {objectives_now} AS now
ON known.flow = now.flow
WHEN MATCHED THEN UPDATE SET
  lag_seconds = now.lag_seconds,
  latency_p99_ms = now.latency_p99_ms,
  heartbeat_seconds = now.heartbeat_seconds,
  stuck_seconds = now.stuck_seconds,
  transaction_seconds = now.transaction_seconds,
  enabled = now.enabled,
  paused = now.paused,
  heartbeats = now.heartbeats,
  gaps = now.gaps,
  mode = coalesce(now.mode, known.mode),
  since = CASE WHEN known.enabled <=> now.enabled AND known.mode <=> coalesce(now.mode, known.mode) THEN known.since
               ELSE current_timestamp() END,
  noted_at = current_timestamp()
WHEN NOT MATCHED THEN INSERT (
  flow, lag_seconds, latency_p99_ms, heartbeat_seconds, stuck_seconds, enabled, paused, heartbeats, gaps, mode, since,
  noted_at, transaction_seconds
) VALUES (
  now.flow, now.lag_seconds, now.latency_p99_ms, now.heartbeat_seconds, now.stuck_seconds, now.enabled, now.paused,
  now.heartbeats, now.gaps, now.mode, current_timestamp(), current_timestamp(), now.transaction_seconds
)
