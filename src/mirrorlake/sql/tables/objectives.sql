-- One row is one flow: its objectives, as the topology file says them, and whether a process is to be running it.
CREATE TABLE IF NOT EXISTS objectives (
  flow STRING NOT NULL,
  lag_seconds BIGINT,
  latency_p99_ms BIGINT,
  heartbeat_seconds BIGINT,
  stuck_seconds BIGINT,
  enabled BOOLEAN COMMENT 'false: disabled or paused as a whole, on purpose',
  paused STRING COMMENT 'regex of source topics that are paused',
  heartbeats BOOLEAN COMMENT 'whether heartbeats are emitted and mirrored',
  gaps BOOLEAN COMMENT 'whether every staged record has to be in the map: not with provenance, which leaves some out',
  mode STRING COMMENT 'continuous: run until told to stop; once: run --once came last; stopped: ended in order; null: never run',
  since TIMESTAMP COMMENT 'since when it is in this mode, and enabled or not',
  noted_at TIMESTAMP
) USING DELTA
COMMENT 'mirrorlake: the objectives of flows'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
