-- One row is one thing that an operator has to know or decide; it is open while resolved_at is null.
CREATE TABLE IF NOT EXISTS incidents (
  flow STRING COMMENT 'source->target',
  at TIMESTAMP NOT NULL COMMENT 'when it was found',
  kind STRING NOT NULL COMMENT 'docs/incidents.md',
  topic STRING COMMENT 'of the source',
  partition INT,
  first_offset BIGINT COMMENT 'of the source, inclusive',
  last_offset BIGINT COMMENT 'of the source, inclusive',
  detail STRING COMMENT 'one sentence: what is wrong, and what to do',
  resolved_at TIMESTAMP COMMENT 'null while it is open',
  resolution STRING COMMENT 'the choice of an operator, or how it ended by itself',
  target_generation INT COMMENT 'of the target topic, where the incident is about one',
  target_offset BIGINT COMMENT 'from which on the target has lost records of the partition',
  generation INT COMMENT 'of the source topic that the incident is about, and a decision holds for; 0 is the first',
  target_topic STRING COMMENT 'the mirror that the incident is about, where a flow may have had others; null: not noted'
) USING DELTA
COMMENT 'mirrorlake: what an operator has to know or decide'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
