-- The stage: one row is one source record. It is read by commit, in order (to produce), and by topic and offset range (to
-- verify and replay), so statistics are kept of the coordinates only, never of the payload.
CREATE TABLE IF NOT EXISTS records (
  source_cluster STRING NOT NULL COMMENT 'alias of the cluster',
  topic STRING NOT NULL,
  partition INT NOT NULL,
  offset BIGINT NOT NULL COMMENT 'at the source',
  timestamp TIMESTAMP COMMENT 'of the record, milliseconds kept; null where its year is not one of 1 to 9999: see timestamp_ms',
  timestamp_type INT COMMENT '0 CreateTime, 1 LogAppendTime',
  key BINARY,
  value BINARY,
  headers ARRAY<STRUCT<key: STRING, value: BINARY>> COMMENT 'in their order',
  landed_at TIMESTAMP COMMENT 'when its batch was landed',
  batch_id BIGINT COMMENT 'the landing batch: its time in ms, and more than of the batch before',
  generation INT COMMENT 'generation of a topic that was deleted and made again at the source; 0 is the first',
  batch_end BIGINT COMMENT 'offset up to which the landed batch covers the partition, exclusive; null if not noted',
  open_ends STRING COMMENT 'of the batch, as JSON: [topic, partition, end, log end] where a log went on behind it; null if not noted',
  timestamp_ms BIGINT COMMENT 'of the record, ms since 1970, as Kafka has it, where timestamp cannot hold it; else null',
  header_names ARRAY<BINARY> COMMENT 'names of all headers as they are, where one is no UTF-8, which headers shows with U+FFFD; else null'
) USING DELTA
COMMENT 'mirrorlake: every source record, once'
TBLPROPERTIES (
  'delta.appendOnly' = 'false',
  'delta.enableChangeDataFeed' = 'true',
  'delta.enableDeletionVectors' = 'false',
  'delta.dataSkippingStatsColumns' = 'source_cluster,topic,partition,offset,batch_id,generation',
  'delta.checkpointInterval' = '100', 'delta.logRetentionDuration' = 'interval 7 days',
  'mirrorlake.version' = '1'
)
