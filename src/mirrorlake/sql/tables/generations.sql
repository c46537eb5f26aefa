-- One row is one generation of a source topic: a topic that was deleted and made again begins a new one when an operator
-- says so. A row with a partition is a generation of that partition alone, whose log at the source went back.
CREATE TABLE IF NOT EXISTS generations (
  source_cluster STRING NOT NULL COMMENT 'alias of the cluster',
  topic STRING NOT NULL COMMENT 'of the source',
  generation INT NOT NULL COMMENT 'counts from 0',
  topic_id STRING NOT NULL COMMENT 'the id that Kafka gave the topic',
  started_at TIMESTAMP NOT NULL COMMENT 'when an operator decided',
  partition INT COMMENT 'null: all partitions of the topic',
  first_offset BIGINT COMMENT 'of a partition: from which offset on its log is another one than before'
) USING DELTA
COMMENT 'mirrorlake: which topic, by its id, the staged records of a name come from'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'delta.checkpointInterval' = '100')
