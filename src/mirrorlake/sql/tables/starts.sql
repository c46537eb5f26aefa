-- One row says from which source offset on a flow mirrors a partition that was there at the flow's first start. A row
-- without a topic says that the flow has started: what comes later is mirrored as a whole.
CREATE TABLE IF NOT EXISTS starts (
  flow STRING NOT NULL COMMENT 'source->target',
  topic STRING COMMENT 'the source topic; null: the flow has started',
  partition INT COMMENT 'its partition',
  generation INT COMMENT 'of the source topic',
  first_offset BIGINT COMMENT 'the first source offset that the flow mirrors',
  asked STRING NOT NULL COMMENT 'the setting start as it was then',
  noted_at TIMESTAMP NOT NULL COMMENT 'of rows that were noted at different times, by two processes, the first ones count'
) USING DELTA
COMMENT 'mirrorlake: where flows began'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'delta.checkpointInterval' = '100')
