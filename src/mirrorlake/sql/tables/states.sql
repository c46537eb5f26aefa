-- One row says how a topic of a source cluster was from a time on. The newest one is what a mirror is made by when the
-- source does not answer, or has the topic no more; the one of a time is what a restored topic is made by.
CREATE TABLE IF NOT EXISTS states (
  cluster STRING NOT NULL COMMENT 'alias of the cluster',
  topic STRING NOT NULL COMMENT 'of the source',
  since TIMESTAMP NOT NULL COMMENT 'from when on it was so',
  partitions INT,
  configs MAP<STRING, STRING> COMMENT 'what was set on the topic itself',
  acls ARRAY<STRUCT<pattern: STRING, name: STRING, principal: STRING, host: STRING, operation: STRING, permission: STRING>>
    COMMENT 'those that apply to the topic, as the cluster has them: on its name, a prefix of it, or *; null if unknown',
  topic_id STRING COMMENT 'the id that Kafka gave the topic',
  factor INT COMMENT 'its replication factor'
) USING DELTA
COMMENT 'mirrorlake: how topics of the source clusters were'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
