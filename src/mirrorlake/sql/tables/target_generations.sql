-- One row is one generation of a target topic that a flow has written to. It begins when the topic is made, or, once an
-- operator has said how to go on, when it is made again. It is noted before the flow's first record goes there.
CREATE TABLE IF NOT EXISTS target_generations (
  flow STRING NOT NULL COMMENT 'source->target',
  topic STRING NOT NULL COMMENT 'the source topic',
  target_topic STRING NOT NULL COMMENT 'the mirror at the target',
  target_generation INT NOT NULL COMMENT 'counts from 0',
  topic_id STRING NOT NULL COMMENT 'the id that Kafka gave the target topic; empty where it was not noted in time',
  begins STRING NOT NULL COMMENT 'stage: it gets everything that the stage holds; end: what the generation before it never got',
  began ARRAY<BIGINT> COMMENT 'log end offset of each partition before the first write of the flow',
  started_at TIMESTAMP NOT NULL
) USING DELTA
COMMENT 'mirrorlake: which target topic, by its id, target offsets of a name belong to'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'delta.checkpointInterval' = '100')
