-- One row is one (flow, group, topic, partition) at one time; positions as Kafka commits them.
CREATE TABLE IF NOT EXISTS checkpoints (
  flow STRING NOT NULL,
  group_id STRING NOT NULL,
  topic STRING NOT NULL,
  partition INT NOT NULL,
  source_position BIGINT,
  target_topic STRING,
  target_position BIGINT,
  metadata STRING,
  checkpointed_at TIMESTAMP,
  synced BOOLEAN,
  reason STRING,
  read_at TIMESTAMP COMMENT 'when the source was asked for the position; null for what was not read there',
  target_generation INT COMMENT 'generation of the target topic that target_position is of'
) USING DELTA
COMMENT 'mirrorlake: positions of consumer groups, translated'
TBLPROPERTIES ('delta.checkpointInterval' = '100', 'delta.logRetentionDuration' = 'interval 7 days', 'delta.enableDeletionVectors' = 'false')
