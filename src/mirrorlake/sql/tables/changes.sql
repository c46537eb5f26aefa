-- One row is one change that was made to a cluster or to the lake, or was refused.
CREATE TABLE IF NOT EXISTS changes (
  flow STRING COMMENT 'source->target',
  at TIMESTAMP NOT NULL,
  kind STRING NOT NULL COMMENT 'topic, partitions, config, acl, group, topology, retention, maintain, ...',
  resource STRING COMMENT 'what was changed',
  before STRING,
  after STRING,
  outcome STRING COMMENT 'done, refused, skipped, gone; begun: noted before it is done, as an ACL or a replay',
  error STRING COMMENT 'why it was refused or skipped',
  policy STRING COMMENT 'of ACLs: how the flow named mirrors when it made it'
) USING DELTA
COMMENT 'mirrorlake: what was changed on the clusters'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
