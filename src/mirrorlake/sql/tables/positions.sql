-- One row is one sample of one partition of a flow. *_end are positions: the offset after the last one. A sample is
-- written when it differs from the one before it, and holds until the next one, or until the newest of its flow; while
-- nothing changes it is written again once an hour, and once a minute if the partition lags. One without a source_end
-- says that from then on the partition could not be sampled: it is gone, is not selected any more, or has no leader.
-- Where nothing waits to be produced, source_start is up to a minute older than the sample.
CREATE TABLE IF NOT EXISTS positions (
  flow STRING NOT NULL COMMENT 'source->target',
  topic STRING NOT NULL COMMENT 'of the source',
  partition INT NOT NULL,
  sampled_at TIMESTAMP NOT NULL,
  source_start BIGINT COMMENT 'the oldest offset still at the source',
  source_end BIGINT COMMENT 'end of the log at the source, of committed records',
  staged_end BIGINT COMMENT 'up to where the stage holds everything',
  produced_end BIGINT COMMENT 'up to where the flow is done, in source offsets',
  target_end BIGINT COMMENT 'end of the log at the target',
  lag_records BIGINT COMMENT 'offsets from produced_end to source_end; 0 once the flow finds nothing behind its position',
  lag_seconds DOUBLE COMMENT 'how long the first record that is not produced has been at the source',
  target_topic STRING COMMENT 'the mirror at the target',
  mapped_end BIGINT COMMENT 'the sample counts for a map that goes at least to this source position; its rows may be late',
  target_passed_end BIGINT
    COMMENT 'all that the flow wrote in front of this target position has source offsets below mapped_end; null: unknown',
  target_generation INT COMMENT 'generation of the target topic that produced_end and target_end are of',
  interval_seconds INT COMMENT 'the flow is sampled again within so many seconds, as long as a process runs it',
  generation INT COMMENT 'of the source topic, that the source offsets are of; null: not noted, by an earlier version',
  source_high_watermark BIGINT
    COMMENT 'end of the log at the source, what lies behind source_end in or behind an open transaction included',
  transaction_since TIMESTAMP
    COMMENT 'since when a transaction is open at source_end, as far as was seen; null: none that was there twice',
  transaction_producer_id BIGINT COMMENT 'whose transaction that is; null: the broker did not tell',
  stalled_since TIMESTAMP
    COMMENT 'since when records wait and produced_end has not moved, later by the time in which nothing was sampled; null: none wait'
) USING DELTA
COMMENT 'mirrorlake: where every partition of every flow stood, and when'
TBLPROPERTIES ('delta.checkpointInterval' = '100', 'delta.logRetentionDuration' = 'interval 7 days', 'delta.enableDeletionVectors' = 'false')
