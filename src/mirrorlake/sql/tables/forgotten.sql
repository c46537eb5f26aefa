-- One row is a range of offsets that `mirrorlake forget` deletes from `records`. Noted before they are deleted. It names
-- offsets only: what they were picked by may be what had to be forgotten.
CREATE TABLE IF NOT EXISTS forgotten (
  source_cluster STRING NOT NULL COMMENT 'alias of the source cluster',
  topic STRING NOT NULL COMMENT 'the source topic',
  partition INT NOT NULL COMMENT 'its partition',
  generation INT NOT NULL COMMENT 'of the source topic',
  first_offset BIGINT NOT NULL COMMENT 'the first offset',
  last_offset BIGINT NOT NULL COMMENT 'the last one, inclusive',
  record_count BIGINT NOT NULL COMMENT 'how many records were staged in the range; all of them go',
  forget_id STRING NOT NULL COMMENT 'of the call of `forget`',
  noted_at TIMESTAMP NOT NULL COMMENT 'before they were deleted',
  deleted_at TIMESTAMP COMMENT 'when they were deleted; null: it was not finished, the next call does it'
) USING DELTA
COMMENT 'mirrorlake: which records were deleted from the stage by predicate'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'delta.checkpointInterval' = '100')
