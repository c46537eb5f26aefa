-- One row is one run: consecutive staged records that got consecutive target offsets. Offsets are inclusive.
-- `maintain` merges neighbouring rows that are older than a day (`first_batch_id` is not null). Between the segments of such
-- a row offsets are left out on both sides, so record_count <= target_last - target_first + 1. Pairs of offsets follow
-- from the segments, as in the view `offset_translation`.
CREATE TABLE IF NOT EXISTS offset_map (
  flow STRING NOT NULL COMMENT 'source->target',
  topic STRING NOT NULL COMMENT 'of the source',
  partition INT NOT NULL,
  source_first BIGINT NOT NULL,
  source_last BIGINT NOT NULL,
  target_topic STRING NOT NULL COMMENT 'the mirror at the target',
  target_partition INT NOT NULL,
  target_first BIGINT NOT NULL,
  target_last BIGINT NOT NULL,
  record_count BIGINT NOT NULL,
  produced_at TIMESTAMP COMMENT 'when the transaction was committed',
  batch_id BIGINT NOT NULL COMMENT 'the producing batch',
  stage_version BIGINT COMMENT 'version of records that the batch was planned from; for information only',
  first_batch_id BIGINT
    COMMENT 'first batch of a row that was made of several, batch_id and produced_at are of the last; else null',
  generation INT COMMENT 'generation of the source topic that the source offsets belong to; 0 is the first',
  target_generation INT COMMENT 'generation of the target topic, which begins when it is made again there; 0 is the first',
  segments ARRAY<STRUCT<source_first: BIGINT, stride: BIGINT, target_first: BIGINT, record_count: BIGINT>>
    COMMENT 'ranges of equally distant source offsets: what makes gaps cheap'
) USING DELTA
COMMENT 'mirrorlake: the exact map between source and target offsets'
TBLPROPERTIES (
  'delta.appendOnly' = 'false',
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingStatsColumns' =
    'flow,topic,partition,source_first,source_last,target_topic,target_partition,target_first,target_last,batch_id,stage_version,generation,target_generation',
  'delta.checkpointInterval' = '100', 'delta.logRetentionDuration' = 'interval 7 days'
)
