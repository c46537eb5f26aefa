-- One row is one record that a target refused and its flow went on behind (`on_refused: park`). Noted before the flow goes
-- on. It is in `records` at these coordinates; a target topic that is made again, and filled again, is offered it once more.
CREATE TABLE IF NOT EXISTS parked (
  flow STRING NOT NULL COMMENT 'as source->target; of what is refused once more, the name of the replay',
  topic STRING NOT NULL COMMENT 'the source topic',
  partition INT NOT NULL COMMENT 'its partition',
  offset BIGINT NOT NULL COMMENT 'the source offset',
  reason STRING COMMENT 'what Kafka calls the refusal',
  parked_at TIMESTAMP NOT NULL COMMENT 'when it was noted',
  replayed_at TIMESTAMP COMMENT 'when it was sent all the same, out of order; null: it never was',
  generation INT NOT NULL COMMENT 'of the source topic',
  target_topic STRING NOT NULL COMMENT 'the topic that refused it',
  target_generation INT NOT NULL COMMENT 'of the target topic that refused it',
  byte_count BIGINT COMMENT 'of key and value'
) USING DELTA
COMMENT 'mirrorlake: records that a target refused, and that flows went on behind'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'delta.checkpointInterval' = '100')
