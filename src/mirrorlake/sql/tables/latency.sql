-- One row is one (flow, batch, topic, partition). landing: source timestamp to landed_at; replication: source timestamp
-- to the target's acknowledgement of the transaction. Milliseconds; negative where clocks disagree.
CREATE TABLE IF NOT EXISTS latency (
  flow STRING NOT NULL COMMENT 'source->target',
  batch_id BIGINT NOT NULL COMMENT 'the producing batch',
  topic STRING NOT NULL COMMENT 'of the source',
  partition INT NOT NULL,
  record_count BIGINT,
  byte_count BIGINT COMMENT 'bytes of keys and values',
  landing_min_ms BIGINT COMMENT 'from the timestamp of a record to its row in records',
  landing_avg_ms DOUBLE,
  landing_p50_ms BIGINT,
  landing_p95_ms BIGINT,
  landing_p99_ms BIGINT,
  landing_max_ms BIGINT,
  replication_min_ms BIGINT COMMENT 'from the timestamp of a record to the commit at the target',
  replication_avg_ms DOUBLE,
  replication_p50_ms BIGINT,
  replication_p95_ms BIGINT,
  replication_p99_ms BIGINT,
  replication_max_ms BIGINT,
  produced_at TIMESTAMP COMMENT 'when the last transaction of the batch was committed',
  way STRING COMMENT 'short: produced by the driver itself; long: by tasks of Spark'
) USING DELTA
COMMENT 'mirrorlake: landing and replication latency of every batch'
TBLPROPERTIES ('delta.appendOnly' = 'false', 'delta.checkpointInterval' = '100', 'delta.logRetentionDuration' = 'interval 7 days', 'delta.enableDeletionVectors' = 'false')
