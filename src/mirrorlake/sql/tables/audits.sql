-- One row is one comparison by content of one range of a partition, as of audited_at, when it began; offsets are inclusive. If
-- a range was compared more than once, the newest row counts (view `proofs`). No range spans a multiple of 100,000.
CREATE TABLE IF NOT EXISTS audits (
  flow STRING NOT NULL COMMENT 'source->target',
  topic STRING NOT NULL COMMENT 'of the source',
  partition INT NOT NULL,
  first_offset BIGINT COMMENT 'of the source, inclusive',
  last_offset BIGINT COMMENT 'of the source, inclusive',
  source_count BIGINT COMMENT 'null: the source has nothing of the range any more',
  stage_count BIGINT,
  target_count BIGINT,
  source_hash STRING COMMENT 'SHA-256 over the digests of all records there, in their order (docs/trust.md)',
  stage_hash STRING,
  target_hash STRING,
  verdict STRING COMMENT 'proven; source_trimmed, superseded: no difference, and some records are gone; or the kind of the first difference',
  audited_at TIMESTAMP,
  generation INT COMMENT 'of the source topic; 0 is the first',
  target_topic STRING COMMENT 'the mirror at the target',
  target_generation INT COMMENT 'of the target topic; 0 is the first',
  target_first_offset BIGINT COMMENT 'the stretch of the log of the target that was read',
  target_last_offset BIGINT,
  byte_count BIGINT COMMENT 'of all that was read',
  excused MAP<STRING, BIGINT> COMMENT 'records that were left out of the comparison, by reason',
  differences ARRAY<STRUCT<kind: STRING, first_offset: BIGINT, last_offset: BIGINT, record_count: BIGINT, target_offset: BIGINT, detail: STRING>>
    COMMENT 'kinds are those of docs/trust.md',
  untold_differences BIGINT COMMENT 'how many differences of the range more than those that are listed',
  only_mapped BIGINT COMMENT 'mapped records that neither source nor stage has; null: an earlier version compared'
) USING DELTA
COMMENT 'mirrorlake: proofs that nothing is missing'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
