-- One row is one flow: its objectives as in the topology file, and whether a process should be running it.
CREATE TABLE IF NOT EXISTS objectives (
  flow STRING NOT NULL COMMENT 'source->target',
  lag_seconds BIGINT COMMENT 'highest lag of a partition',
  latency_p99_ms BIGINT COMMENT 'highest p99 of a topic',
  heartbeat_seconds BIGINT COMMENT 'highest age of a heartbeat',
  stuck_seconds BIGINT COMMENT 'how long a partition with records to produce may stand still',
  enabled BOOLEAN COMMENT 'false: disabled or paused as a whole, on purpose',
  paused STRING COMMENT 'regex of source topics that are paused',
  heartbeats BOOLEAN COMMENT 'whether heartbeats are emitted and mirrored',
  gaps BOOLEAN COMMENT 'whether every staged record has to be in the map: not with provenance, which leaves some out',
  mode STRING COMMENT 'continuous: run until stopped; once: run --once came last; stopped: ended in order; null: never run',
  since TIMESTAMP COMMENT 'since when it is in this mode, and enabled or not',
  noted_at TIMESTAMP,
  heartbeat_topics STRING COMMENT 'regex of source topics that hold heartbeats, by their content; null: not looked at yet',
  transaction_seconds BIGINT COMMENT 'how long a transaction may hold a partition of the source back'
) USING DELTA
COMMENT 'mirrorlake: the objectives of flows'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
