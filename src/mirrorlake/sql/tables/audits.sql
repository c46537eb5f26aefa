-- One row is one verified range of one partition; offsets inclusive.
CREATE TABLE IF NOT EXISTS audits (
  flow STRING NOT NULL,
  topic STRING NOT NULL,
  partition INT NOT NULL,
  first_offset BIGINT,
  last_offset BIGINT,
  source_count BIGINT,
  stage_count BIGINT,
  target_count BIGINT,
  source_hash STRING,
  stage_hash STRING,
  target_hash STRING,
  verdict STRING,
  audited_at TIMESTAMP
) USING DELTA
COMMENT 'mirrorlake: proofs that nothing is missing'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
