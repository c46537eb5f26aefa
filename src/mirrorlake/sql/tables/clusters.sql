-- One row is one cluster that was seen, by the id that Kafka gave it.
CREATE TABLE IF NOT EXISTS clusters (
  alias STRING NOT NULL COMMENT 'name in the topology file',
  cluster_id STRING NOT NULL COMMENT 'the id that Kafka gave the cluster',
  first_seen TIMESTAMP,
  last_seen TIMESTAMP
) USING DELTA
COMMENT 'mirrorlake: the clusters'
TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')
