-- One row is one thing that an operator must know; open while resolved_at is null.
CREATE TABLE IF NOT EXISTS incidents (
  flow STRING,
  at TIMESTAMP NOT NULL,
  kind STRING NOT NULL,
  topic STRING,
  partition INT,
  first_offset BIGINT,
  last_offset BIGINT,
  detail STRING,
  resolved_at TIMESTAMP,
  resolution STRING,
  target_generation INT COMMENT 'of the target topic, where the incident is about one'
) USING DELTA
COMMENT 'mirrorlake: what an operator has to know or decide'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
