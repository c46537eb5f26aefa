-- One row is one life of a source topic: a topic that was deleted and made again begins a new one when told to.
CREATE TABLE IF NOT EXISTS generations (
  source_cluster STRING NOT NULL,
  topic STRING NOT NULL,
  generation INT NOT NULL COMMENT 'counts from 0',
  topic_id STRING NOT NULL COMMENT 'the id that Kafka gave the topic',
  started_at TIMESTAMP NOT NULL
) USING DELTA
COMMENT 'mirrorlake: which topic, by its id, the staged records of a name come from'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'delta.checkpointInterval' = '100')
