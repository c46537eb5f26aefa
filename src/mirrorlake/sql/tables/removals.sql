-- One row is what `maintain` deleted from `records` of one generation of a partition, or what landing passed over since the
-- flows that were there began behind it. It is noted before that happens.
CREATE TABLE IF NOT EXISTS removals (
  source_cluster STRING NOT NULL COMMENT 'alias of the cluster',
  topic STRING NOT NULL COMMENT 'of the source',
  partition INT NOT NULL,
  generation INT NOT NULL COMMENT 'of the source topic',
  first_offset BIGINT NOT NULL COMMENT 'the first offset that was there',
  below BIGINT NOT NULL COMMENT 'the offset behind the last one that was deleted, or passed over',
  removed_at TIMESTAMP NOT NULL
) USING DELTA
COMMENT 'mirrorlake: which records are not in the stage (any more); a flow that lacks them stops and says so'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'delta.checkpointInterval' = '100')
