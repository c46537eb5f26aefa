-- One row is one sample of one partition of one flow. *_end are positions: the offset after the last one.
CREATE TABLE IF NOT EXISTS positions (
  flow STRING NOT NULL,
  topic STRING NOT NULL,
  partition INT NOT NULL,
  sampled_at TIMESTAMP NOT NULL,
  source_start BIGINT,
  source_end BIGINT,
  staged_end BIGINT,
  produced_end BIGINT,
  target_end BIGINT,
  lag_records BIGINT,
  lag_seconds DOUBLE,
  target_topic STRING,
  mapped_end BIGINT COMMENT 'the sample counts for a map that goes at least to this source position; its rows may be late',
  target_passed_end BIGINT
    COMMENT 'all that the flow wrote in front of this target position has source offsets below mapped_end; null: unknown',
  target_generation INT COMMENT 'generation of the target topic that produced_end and target_end are of'
) USING DELTA
COMMENT 'mirrorlake: where every partition of every flow stood, and when'
TBLPROPERTIES ('delta.checkpointInterval' = '100', 'delta.logRetentionDuration' = 'interval 7 days', 'delta.enableDeletionVectors' = 'false')
