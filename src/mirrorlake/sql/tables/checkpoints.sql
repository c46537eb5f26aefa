-- One row is one (flow, group, topic, partition) at one time; positions as Kafka commits them.
CREATE TABLE IF NOT EXISTS checkpoints (
  flow STRING NOT NULL COMMENT 'source->target',
  group_id STRING NOT NULL,
  topic STRING NOT NULL COMMENT 'of the source',
  partition INT NOT NULL,
  source_position BIGINT COMMENT 'the next offset that the group reads at the source; null: the flow leaves the group out',
  target_topic STRING COMMENT 'the mirror at the target; null: the position has no counterpart there',
  target_position BIGINT COMMENT 'the same position at the target, or the nearest safe one (reason says so); null: none',
  metadata STRING COMMENT 'what the group committed with it',
  checkpointed_at TIMESTAMP,
  synced BOOLEAN COMMENT 'whether the group stands there at the target',
  reason STRING COMMENT 'why it was held back, kept or left; null: it was not',
  read_at TIMESTAMP COMMENT 'when the source was asked for the position; null for what was not read there',
  target_generation INT COMMENT 'generation of the target topic that target_position is of',
  generation INT COMMENT 'of the source topic that source_position is of; 0 is the first'
) USING DELTA
COMMENT 'mirrorlake: positions of consumer groups, translated'
TBLPROPERTIES ('delta.checkpointInterval' = '100', 'delta.logRetentionDuration' = 'interval 7 days', 'delta.enableDeletionVectors' = 'false')
