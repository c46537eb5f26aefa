-- One row is one change that control made to a cluster, or refused to make.
CREATE TABLE IF NOT EXISTS changes (
  flow STRING,
  at TIMESTAMP NOT NULL,
  kind STRING NOT NULL COMMENT 'topic, partitions, config, acl, group, ...',
  resource STRING,
  before STRING,
  after STRING,
  outcome STRING,
  error STRING
) USING DELTA
COMMENT 'mirrorlake: what was changed on the clusters'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
